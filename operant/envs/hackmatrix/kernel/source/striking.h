// What an action does to enemies and transmissions. Each function crosses out entries and returns the kills that pay.
#pragma once
#include "legality.h"

constexpr int NOBODY = -1;

// Whether an entry is the first of a list on its cell: of several on one cell the first decides about a kill.
HD bool is_first_on_cell(const u32* list, int slot) {
    for (int other = 0; other < slot; other++)
        if (square_in(list[other]) == square_in(list[slot])) return false;
    return true;
}

HD int slot_at(const u32* list, int number, int square) {  // the first entry on a cell
    for (int slot = 0; slot < number; slot++)
        if (square_in(list[slot]) == square) return slot;
    return NOBODY;
}

// An enemy loses HP and is stunned, or is crossed out.
HD int hit(Game& game, int slot, int damage) {
    u32 enemy = game.enemies[slot];
    int hp = enemy_hp(enemy) - damage;
    game.enemies[slot] = hp > 0 ? with_hp(enemy, hp) | ENEMY_STUNNED : 0;
    return hp <= 0 && !(enemy & ENEMY_FROM_TASK);
}

HD int hit_all(Game& game, const Facts& facts, Board where, int damage) {
    int kills = 0;
    for (int slot = 0; slot < facts.enemy_count; slot++)
        if (holds(where, square_in(game.enemies[slot]))) kills += hit(game, slot, damage);
    return kills;
}

HD int hit_viruses(Game& game, const Facts& facts) {
    int kills = 0;
    for (int slot = 0; slot < facts.enemy_count; slot++)
        if (enemy_kind(game.enemies[slot]) == VIRUS) kills += hit(game, slot, HIT_BY_ANTI_V);
    return kills;
}

// Remove all entries of a list on some cells, whatever their HP. From the back, so that the first of a cell is known.
HD int remove_all(u32* list, int number, Board where, u32 from_task) {
    int kills = 0;
    for (int slot = number - 1; slot >= 0; slot--) {
        if (!holds(where, square_in(list[slot]))) continue;
        kills += !(list[slot] & from_task) && is_first_on_cell(list, slot);
        list[slot] = 0;
    }
    return kills;
}

HD int strike_ahead(Game& game, const Facts& facts, int target) {
    bool at_signal = holds(facts.signals_at, target);
    if (!at_signal) return hit(game, slot_at(game.enemies, facts.enemy_count, target), game.attack);
    int slot = slot_at(game.signals, facts.signal_count, target);
    bool paid = !(game.signals[slot] & SIGNAL_FROM_TASK);
    game.signals[slot] = 0;
    return paid;
}

HD int crash(Game& game, const Facts& facts) {
    Board around = eight(game.at);
    int kills = remove_all(game.enemies, facts.enemy_count, around, ENEMY_FROM_TASK);
    kills += remove_all(game.signals, facts.signal_count, around, SIGNAL_FROM_TASK);
    game.blocks &= ~around;
    for (; around; around &= around - 1) game.cells[cell_of(first(around))] &= RESOURCE_BITS;
    return kills;
}

HD int warp(Game& game, const Facts& facts) {
    int index = game.source.pick(AT_WARP, facts.enemy_count + facts.signal_count);
    bool to_enemy = index < facts.enemy_count;
    game.at = square_in(to_enemy ? game.enemies[index] : game.signals[index - facts.enemy_count]);
    if (to_enemy) return remove_all(game.enemies, facts.enemy_count, bit(game.at), ENEMY_FROM_TASK);
    return remove_all(game.signals, facts.signal_count, bit(game.at), SIGNAL_FROM_TASK);
}

HD int bomb(Game& game, const Facts& facts) {  // the nearest daemon goes, and whoever is around it is hit
    int nearest = NOBODY, least = FAR;
    for (int slot = 0; slot < facts.enemy_count; slot++) {
        int away = manhattan(square_in(game.enemies[slot]), game.at);
        if (enemy_kind(game.enemies[slot]) == DAEMON && away < least) nearest = slot, least = away;
    }
    u32 daemon = game.enemies[nearest];
    int kills = hit_all(game, facts, eight(square_in(daemon)), HIT_BY_BOMB);
    game.enemies[nearest] = 0;
    return kills + !(daemon & ENEMY_FROM_TASK);
}

HD int poly(Game& game, const Facts& facts) {
    int kills = 0;
    for (int slot = 0; slot < facts.enemy_count; slot++) {
        u32 enemy = game.enemies[slot];
        int old = enemy_kind(enemy), drawn = game.source.pick(AT_POLY + slot, ENEMY_KINDS - 1);
        int kind = drawn + (drawn >= old), hp = enemy_hp(enemy) + most_hp(kind) - most_hp(old);
        kills += hp <= 0 && !(enemy & ENEMY_FROM_TASK);
        enemy = with_kind(with_hp(enemy, hp), kind);
        if (kind == CRYPTOG) enemy = with_last_seen(enemy, square_in(enemy));
        game.enemies[slot] = hp > 0 ? enemy : 0;
    }
    return kills;
}

HD int shoved(int at, int player, bool pull) {  // where an enemy is sent; NOBODY if there is no such cell
    int way = pull ? -1 : 1, best = FAR, target = NOBODY;
    int rows = way * sign(row_of(at) - row_of(player)) * ROW_BITS, cols = way * sign(col_of(at) - col_of(player));
    const int changes[3] = {rows + cols, rows, cols};
    for (int which = 0; which < 3; which++) {
        int square = at + changes[which];
        bool offered = which == 0 || changes[which] != 0;
        if (!offered || !is_on_board(square) || (pull && square == player)) continue;
        int cost = -way * manhattan(square, player);
        if (cost < best) best = cost, target = square;
    }
    return target;
}

HD void shove_all(Game& game, const Facts& facts, bool pull) {  // of several sent to one cell the first goes there
    Board sent = 0;
    for (int slot = 0; slot < facts.enemy_count; slot++) {
        int target = shoved(square_in(game.enemies[slot]), game.at, pull);
        if (target == NOBODY || holds(sent, target)) continue;
        sent |= bit(target);
        game.enemies[slot] = with_square(game.enemies[slot], target);
    }
}

HD void delay(Game& game, const Facts& facts) {
    for (int slot = 0; slot < facts.signal_count; slot++) game.signals[slot] += static_cast<u32>(DELAY_TURNS) << 16;
}

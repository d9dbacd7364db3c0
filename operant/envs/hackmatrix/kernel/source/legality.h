// What can be done: the facts that actions depend on, and which programs can run.
#pragma once
#include "game.h"

struct Facts {
    int enemy_count, signal_count;
    Board enemies_at, signals_at;
    u32 kinds;  // a bit for each type of enemy there is
};

HD Facts survey(const Game& game) {
    Facts facts = {0, 0, 0, 0, 0};
    for (; facts.enemy_count < SLOTS && game.enemies[facts.enemy_count]; facts.enemy_count++) {
        u32 enemy = game.enemies[facts.enemy_count];
        facts.enemies_at |= bit(square_in(enemy));
        facts.kinds |= 1u << enemy_kind(enemy);
    }
    for (; facts.signal_count < SLOTS && game.signals[facts.signal_count]; facts.signal_count++)
        facts.signals_at |= bit(square_in(game.signals[facts.signal_count]));
    return facts;
}

HD int credits_of(int program) {
    const unsigned char prices[] = {PROGRAM_CREDITS};
    return prices[program];
}

HD int energy_of(int program) {
    const unsigned char prices[] = {PROGRAM_ENERGY};
    return prices[program];
}

HD int spawn_of(int program) {
    const unsigned char counts[] = {PROGRAM_SPAWN};
    return counts[program];
}

HD bool any_spawning(const Game& game) {  // whether a block would still send enemies if it were siphoned
    for (Board left = game.blocks & ~game.siphoned; left; left &= left - 1)
        if (cell_spawn(game.cells[cell_of(first(left))])) return true;
    return false;
}

HD bool has_something_to_do(const Game& game, const Facts& facts, int program) {
    switch (program) {
        case PUSH:
        case PULL:
        case POLY: return facts.enemy_count > 0;
        case CRASH: return (facts.enemies_at | facts.signals_at | game.blocks) & eight(game.at);
        case WARP: return facts.enemy_count + facts.signal_count > 0;
        case DEBUG: return facts.enemies_at & game.blocks;
        case ROW: return facts.enemies_at & row_board(game.at);
        case COL: return facts.enemies_at & col_board(game.at);
        case UNDO: return game.saved > 0;
        case SHOW: return !game.show;
        case RESET: return game.hp < MAX_HP;
        case CALM: return !game.calm;
        case D_BOM: return facts.kinds >> DAEMON & 1;
        case DELAY: return facts.signal_count > 0;
        case ANTI_V: return facts.kinds >> VIRUS & 1;
        case SCORE: return game.stage < STAGES;
        case REDUC: return any_spawning(game);
        case ATK_PLUS: return game.attack_uses < ATK_PLUS_USES;
        case HACK: return game.siphoned != 0;
        default: return true;
    }
}

HD bool can_run(const Game& game, const Facts& facts, int program) {
    return game.owned >> program & 1 && game.credits >= credits_of(program) && game.energy >= energy_of(program) &&
           has_something_to_do(game, facts, program);
}

HD void write_mask(const Game& game, bool* mask) {
    Facts facts = survey(game);
    Board passable = facts.enemies_at | (FULL & ~game.blocks);
    for (int direction = 0; direction < SIPHON; direction++)
        mask[direction] = (moved(bit(game.at), direction) & passable) != 0;
    mask[SIPHON] = game.siphons > 0;
    for (int program = 0; program < PROGRAM_COUNT; program++)
        mask[FIRST_PROGRAM + program] = can_run(game, facts, program);
}

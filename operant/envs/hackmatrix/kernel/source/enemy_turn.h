// The enemies' turn: hatching, attacks and moves, the scheduled task, what siphoning has called.
#pragma once
#include "spawning.h"

// Transmissions whose time has come join the enemies, the others come a turn nearer and close their ranks.
HD int hatch(Game& game, int number) {
    for (int slot = 0; slot < SLOTS; slot++) {
        u32 signal = game.signals[slot];
        if (!signal) continue;
        if (signal_turns(signal) > 1) {
            game.signals[slot] = signal - (1u << 16);
            continue;
        }
        game.signals[slot] = 0;
        if (number == SLOTS) continue;
        u32 at = square_in(signal), kind = signal_kind(signal), flags = ENEMY_DISABLED | ENEMY_ALIVE;
        if (signal & SIGNAL_FROM_SIPHON) flags |= ENEMY_FROM_SIPHON;
        if (signal & SIGNAL_FROM_TASK) flags |= ENEMY_FROM_TASK;
        game.enemies[number++] = at | at << 6 | kind << 12 | flags | most_hp(kind) << 24;
    }
    compact(game.signals);
    return number;
}

// The free neighbour nearest to the player, first in direction order on ties, even if it is farther than now.
HD int last_resort(int at, int player, Board free) {
    int best = FAR, chosen = STAY;
    for (int direction = 0; direction < 4; direction++) {
        int step = step_of(direction);
        if (!(moved(bit(at), direction) & free)) continue;
        int away = manhattan(at + step, player);
        if (away < best) best = away, chosen = step;
    }
    return chosen;
}

// Where an enemy goes that is not adjacent to the player. Its own cell may count as occupied: no path leads back
// through it.
HD int next_step(const Game& game, u32 enemy, Board occupied) {
    int at = square_in(enemy);
    Board ground = enemy_kind(enemy) == GLITCH ? FULL : FULL & ~game.blocks, free = ground & ~occupied;
    int step = toward(at, game.at, free | (ground & bit(game.at)));
    if (step != STAY) return step;
    step = toward(at, game.at, ground);
    if (step != STAY && holds(free, at + step)) return step;
    return last_resort(at, game.at, free);
}

HD void act(Game& game, int slot, Board& enemies_at, Board barred, int number) {
    u32 enemy = game.enemies[slot];
    int at = square_in(enemy);
    if (manhattan(at, game.at) == 1) {
        game.hp = larger(game.hp - 1, 0);
        game.enemies[slot] = enemy | ENEMY_FINISHED;
        return;
    }
    int step = next_step(game, enemy, enemies_at | barred);
    if (step == STAY) return;
    enemy = with_square(enemy, at + step);
    if (enemy_kind(enemy) == CRYPTOG && in_line(at + step, game.at)) enemy = with_last_seen(enemy, at + step);
    game.enemies[slot] = enemy;
    enemies_at |= bit(at + step);
    for (int other = 0; other < number; other++)
        if (square_in(game.enemies[other]) == at) return;  // somebody else is left where it was
    enemies_at &= ~bit(at);
}

// Two sub-steps, in each of which every enemy that still can attacks or moves, in an order drawn for it.
HD void move_all(Game& game, int number) {
    Board enemies_at = where_they_are(game.enemies), barred = where_they_are(game.signals);
    u32 priority[SLOTS];
    for (int sub_step = 0; sub_step < 2; sub_step++) {
        u64 waiting = 0;
        for (int slot = 0; slot < number; slot++) {
            u32 enemy = game.enemies[slot];
            bool ready = !(enemy & (ENEMY_DISABLED | ENEMY_STUNNED | ENEMY_FINISHED));
            if (ready && (sub_step == 0 || enemy_kind(enemy) == VIRUS)) waiting |= 1ULL << slot;
        }
        bool alone = !(waiting & (waiting - 1));
        for (u64 left = alone ? 0 : waiting; left; left &= left - 1)
            priority[first(left)] = game.source.word(AT_ORDER + SLOTS * sub_step + first(left));
        while (waiting) {
            int next = first(waiting);
            for (u64 left = waiting & (waiting - 1); left; left &= left - 1)
                if (priority[first(left)] < priority[next]) next = first(left);
            waiting &= ~(1ULL << next);
            act(game, next, enemies_at, barred, number);
        }
    }
    for (int slot = 0; slot < number; slot++) game.enemies[slot] &= ~(ENEMY_STUNNED | ENEMY_DISABLED | ENEMY_FINISHED);
}

// The scheduled task and the pending spawns, one transmission after the other. At most 35 cells are ever free.
HD void call_more(Game& game) {
    bool task = !game.calm && game.turn >= game.next_task;
    int calls = smaller(game.pending, SLOTS - 1), number = length(game.signals);
    if (task || calls > 0) {
        Room left = room(game.at, where_they_are(game.enemies) | game.blocks, where_they_are(game.signals));
        for (int index = task ? 0 : 1; index <= calls; index++) {
            int address = index ? AT_SIPHON_SPAWN + 2 * (index - 1) : AT_TASK;
            u32 signal = spawn(game.source, address, left, index ? SIGNAL_FROM_SIPHON : SIGNAL_FROM_TASK);
            if (!signal) break;
            if (number < SLOTS) game.signals[number++] = signal;
        }
    }
    if (task) game.next_task = game.turn + game.interval;
    game.pending = 0;
}

// Let the enemies act where a turn is due, and say whether they did: STEP makes them miss the whole turn.
HD bool enemy_turn(Game& game, bool due) {
    int number = compact(game.enemies);
    if (!due || game.skip) {
        compact(game.signals);
        game.skip = game.skip && !due;
        return false;
    }
    game.turn++;
    move_all(game, hatch(game, number));
    call_more(game);
    game.newest = (game.newest + 1) % MAX_HISTORY;
    game.saved = smaller(game.saved + 1, MAX_HISTORY);
    return true;
}

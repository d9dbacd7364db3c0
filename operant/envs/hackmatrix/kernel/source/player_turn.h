// The player's action: walking, siphoning and programs.
#pragma once
#include "siphoning.h"
#include "striking.h"

struct Deed {
    bool legal, ends_turn, picked_up, reached_exit, wasted;
    int kills;
    Missed missed;
};

// The first enemy or transmission outward from the player, NOBODY where a block or the edge comes before.
HD int take_aim(const Game& game, const Facts& facts, int step) {
    for (int square = game.at + step; is_on_board(square); square += step) {
        if (holds(facts.enemies_at | facts.signals_at, square)) return square;
        if (holds(game.blocks, square)) return NOBODY;
    }
    return NOBODY;
}

HD void move(Game& game, const Facts& facts, int direction, Deed& deed) {
    int step = step_of(direction), ahead = game.at + step, target = take_aim(game, facts, step);
    deed.legal = target != NOBODY || (is_on_board(ahead) && !holds(game.blocks, ahead));
    if (!deed.legal) return;
    if (target != NOBODY) {
        deed.kills = strike_ahead(game, facts, target);
        return;
    }
    game.at = ahead;
    deed.picked_up = holds(game.pickups, ahead);
    game.siphons += deed.picked_up;
    game.pickups &= ~bit(ahead);
    deed.reached_exit = ahead == game.gate;
}

HD void reduce_spawns(Game& game) {
    for (Board left = game.blocks & ~game.siphoned; left; left &= left - 1) {
        u32& cell = game.cells[cell_of(first(left))];
        if (cell_spawn(cell)) cell -= 1u << 24;
    }
}

HD void undo(Game& game, u32* words, const u32* history) {
    const u32* newest = history + game.newest * SCENE_WORDS;
    for (int index = 0; index < SCENE_WORDS; index++) words[index] = newest[index];
    read_scene(game, words);
    game.saved--;
    game.newest = (game.newest + MAX_HISTORY - 1) % MAX_HISTORY;
}

HD void run_program(Game& game, const Facts& facts, int program, u32* words, const u32* history, Deed& deed) {
    deed.legal = program < PROGRAM_COUNT && can_run(game, facts, program);
    if (!deed.legal) return;
    game.credits -= credits_of(program);
    game.energy -= energy_of(program);
    switch (program) {
        case PUSH: shove_all(game, facts, false); break;
        case PULL: shove_all(game, facts, true); break;
        case CRASH: deed.kills = crash(game, facts); break;
        case WARP:
            deed.kills = warp(game, facts);
            deed.reached_exit = game.at == game.exit;
            break;
        case POLY: deed.kills = poly(game, facts); break;
        case DEBUG: deed.kills = hit_all(game, facts, game.blocks, game.attack); break;
        case ROW: deed.kills = hit_all(game, facts, row_board(game.at), game.attack); break;
        case COL: deed.kills = hit_all(game, facts, col_board(game.at), game.attack); break;
        case UNDO: undo(game, words, history); break;
        case STEP: game.skip = 1; break;
        case SIPH_PLUS: game.siphons++; break;
        case EXCH: game.energy += EXCH_ENERGY; break;
        case SHOW: game.show = 1; break;
        case RESET:
            deed.wasted = game.hp == WASTE_HP;
            game.hp = MAX_HP;
            break;
        case CALM: game.calm = 1; break;
        case D_BOM: deed.kills = bomb(game, facts); break;
        case DELAY: delay(game, facts); break;
        case ANTI_V: deed.kills = hit_viruses(game, facts); break;
        case SCORE: game.score += STAGES - game.stage; break;
        case REDUC: reduce_spawns(game); break;
        case ATK_PLUS: game.attack++, game.attack_uses++; break;
        case HACK: deed.kills = hit_all(game, facts, game.siphoned, game.attack); break;
        default: break;
    }
}

// Carry out an action, or refuse it and change nothing.
HD Deed carry_out(Game& game, int action, u32* words, const u32* history) {
    Facts facts = survey(game);
    Deed deed = {false, false, false, false, false, 0, {0, 0}};
    if (action < SIPHON) move(game, facts, action, deed);
    else if (action > SIPHON) run_program(game, facts, action - FIRST_PROGRAM, words, history, deed);
    else if (game.siphons > 0) {
        deed.legal = true;
        deed.missed = siphon(game);
    }
    deed.ends_turn = deed.legal && (action <= SIPHON || action == FIRST_PROGRAM + WAIT) && !deed.reached_exit;
    return deed;
}

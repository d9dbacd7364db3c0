// A game: its numbers in registers, its lists of packed words where the caller keeps them, and its addressed draws.
#pragma once
#include "board.h"

constexpr int SLOTS = MAX_ENEMIES;
constexpr int BOARDS_START = 8, LISTS_START = 16;
constexpr int SCENE_WORDS = LISTS_START + 3 * SLOTS, GAME_WORDS = SCENE_WORDS + 7;
constexpr int HISTORY_WORDS = MAX_HISTORY * SCENE_WORDS;

// Bits of an enemy's word: at 0-5, last seen 6-11, kind 12-13, flags, hp 24-31
constexpr u32 ENEMY_STUNNED = 1u << 14, ENEMY_FROM_SIPHON = 1u << 15, ENEMY_FROM_TASK = 1u << 16;
constexpr u32 ENEMY_DISABLED = 1u << 17, ENEMY_FINISHED = 1u << 18, ENEMY_ALIVE = 1u << 19;
// Bits of a transmission's word: at 0-5, flags, kind 8-9, turns 16-31
constexpr u32 SIGNAL_FROM_SIPHON = 1u << 6, SIGNAL_FROM_TASK = 1u << 7, SIGNAL_ALIVE = 1u << 10;
// Bits of a cell's word: amount 0-7, flags, value 16-23, spawn count 24-31
constexpr u32 CELL_ENERGY = 1u << 8, CELL_PROGRAM = 1u << 9, CELL_QUESTION = 1u << 10, RESOURCE_BITS = (1u << 9) - 1;

HD int square_in(u32 entry) { return entry & 63; }  // of an enemy or a transmission
HD u32 with_square(u32 entry, int square) { return (entry & ~63u) | square; }
HD int enemy_kind(u32 enemy) { return enemy >> 12 & 3; }
HD int enemy_hp(u32 enemy) { return enemy >> 24; }
HD u32 with_hp(u32 enemy, int hp) { return (enemy & 0xFFFFFFu) | static_cast<u32>(hp) << 24; }
HD u32 with_kind(u32 enemy, int kind) { return (enemy & ~(3u << 12)) | kind << 12; }
HD u32 with_last_seen(u32 enemy, int square) { return (enemy & ~(63u << 6)) | square << 6; }
HD int most_hp(int kind) { return kind == DAEMON ? DAEMON_HP : OTHER_HP; }
HD int signal_kind(u32 signal) { return signal >> 8 & 3; }
HD int signal_turns(u32 signal) { return signal >> 16; }
HD int cell_amount(u32 cell) { return cell & 255; }
HD int cell_value(u32 cell) { return cell >> 16 & 255; }
HD int cell_spawn(u32 cell) { return cell >> 24; }

// Threefry-2x32 with 20 rounds (Salmon et al., 2011).
struct Source {
    u32 high, low, event;

    HD u32 word(u32 address) const {
        u32 keys[3] = {high, low, high ^ low ^ 0x1BD11BDAu};
        u32 x = event + keys[0], y = address + keys[1];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int group = 0; group < 5; group++) {
            const bool odd = group & 1;
            x += y, y = rotated(y, odd ? 17 : 13) ^ x;
            x += y, y = rotated(y, odd ? 29 : 15) ^ x;
            x += y, y = rotated(y, odd ? 16 : 26) ^ x;
            x += y, y = rotated(y, odd ? 24 : 6) ^ x;
            x += keys[(group + 1) % 3];
            y += keys[(group + 2) % 3] + group + 1;
        }
        return x;
    }

    HD int pick(u32 address, int n) const {  // a whole number from 0 to n - 1
        return static_cast<int>(static_cast<u64>(word(address)) * static_cast<u32>(n) >> 32);
    }

    HD static u32 rotated(u32 word, int turn) { return word << turn | word >> (32 - turn); }
};

// Whatever is not in a list. `gate` is the cell whose content is the exit, `exit` the exit position, `skip` the flag
// of STEP.
struct Game {
    int at, hp, attack_uses, show, calm, gate;
    int credits, energy, siphons, score, attack, turn;
    u32 owned;
    Board blocks, siphoned, centres, pickups;
    int stage, exit, skip, interval, next_task, pending, saved, newest, steps;
    Source source;
    u32 *cells, *enemies, *signals;
};

HD Board read_board(const u32* words) { return words[0] | static_cast<Board>(words[1]) << WORD_SQUARES; }

HD void write_board(u32* words, Board board) {
    words[0] = static_cast<u32>(board) & ((1u << WORD_SQUARES) - 1);
    words[1] = static_cast<u32>(board >> WORD_SQUARES);
}

HD void read_scene(Game& game, u32* words) {
    u32 notes = words[0];
    game.at = notes & 63, game.hp = notes >> 6 & 3, game.attack_uses = notes >> 8 & 3;
    game.show = notes >> 10 & 1, game.calm = notes >> 11 & 1, game.gate = notes >> 12 & 63;
    game.credits = words[1], game.energy = words[2], game.siphons = words[3];
    game.score = words[4], game.attack = words[5], game.turn = words[6], game.owned = words[7];
    const u32* boards = words + BOARDS_START;
    game.blocks = read_board(boards), game.siphoned = read_board(boards + 2);
    game.centres = read_board(boards + 4), game.pickups = read_board(boards + 6);
    game.cells = words + LISTS_START, game.enemies = game.cells + SLOTS, game.signals = game.enemies + SLOTS;
}

HD Game read_game(u32* words) {
    Game game;
    read_scene(game, words);
    const u32* rest = words + SCENE_WORDS;
    u32 notes = rest[0];
    game.stage = notes & 15, game.exit = notes >> 4 & 63;
    game.skip = notes >> 10 & 1, game.interval = notes >> 11 & 255;
    game.saved = notes >> 19 & 15, game.newest = notes >> 23 & 7;
    game.next_task = rest[1], game.pending = rest[2], game.steps = rest[3];
    game.source = Source{rest[4], rest[5], rest[6]};
    return game;
}

// Put the numbers of a game beside its lists, which are in their place already.
HD void write_game(const Game& game, u32* words) {
    words[0] = game.at | game.hp << 6 | game.attack_uses << 8 | game.show << 10 | game.calm << 11 | game.gate << 12;
    words[1] = game.credits, words[2] = game.energy, words[3] = game.siphons;
    words[4] = game.score, words[5] = game.attack, words[6] = game.turn, words[7] = game.owned;
    u32* boards = words + BOARDS_START;
    write_board(boards, game.blocks), write_board(boards + 2, game.siphoned);
    write_board(boards + 4, game.centres), write_board(boards + 6, game.pickups);
    u32* rest = words + SCENE_WORDS;
    u32 notes = game.stage | game.exit << 4 | game.skip << 10 | game.interval << 11;
    rest[0] = notes | game.saved << 19 | game.newest << 23;
    rest[1] = game.next_task, rest[2] = game.pending, rest[3] = game.steps;
    rest[4] = game.source.high, rest[5] = game.source.low, rest[6] = game.source.event;
}

HD int newest_row(const u32* words) { return words[SCENE_WORDS] >> 23 & 7; }  // of the history

// A word of what the history keeps: the scene, but not where enemies and transmissions came from.
HD u32 snapshot_word(const u32* words, int index) {
    u32 forgotten = index >= LISTS_START + 2 * SLOTS   ? SIGNAL_FROM_SIPHON | SIGNAL_FROM_TASK
                    : index >= LISTS_START + SLOTS ? ENEMY_FROM_SIPHON | ENEMY_FROM_TASK
                                                   : 0;
    return words[index] & ~forgotten;
}

// Lists are hole-free between steps: the entries before the first empty slot.
HD int length(const u32* list) {
    int number = 0;
    while (number < SLOTS && list[number]) number++;
    return number;
}

HD Board where_they_are(const u32* list) {
    Board board = 0;
    for (int slot = 0; slot < SLOTS && list[slot]; slot++) board |= bit(square_in(list[slot]));
    return board;
}

// Close the ranks of a list; how many there are.
HD int compact(u32* list) {
    int number = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        u32 entry = list[slot];
        if (!entry) continue;
        if (slot != number) list[number] = entry, list[slot] = 0;
        number++;
    }
    return number;
}

// What an agent sees: 10 numbers of the player, 23 programs, 36 cells of 42 channels each.
// Three words a cell hold all its channels, so that a vector can be written by many threads that read few words.
#pragma once
#include "game.h"

constexpr int LOOK_WORDS = 3 * CELLS;
constexpr int FIRST_CELL = PLAYER_FEATURES + PROGRAM_COUNT;
constexpr int LATE = 20;  // programs from here on are in the second word
constexpr int TURNS_SEEN = 4, AMOUNT_SCALE = 3;
constexpr int MOST_SEEN = 50;  // credits or energy

// Channels 0 to 6 of a cell but for HP, which is in bits 8 to 15, of its first enemy in list order if seen.
HD u32 enemy_look(const u32* words, int square) {
    const u32 *enemies = words + LISTS_START + SLOTS, notes = words[0];
    for (int slot = 0; slot < SLOTS && enemies[slot]; slot++) {
        u32 enemy = enemies[slot];
        if (square_in(enemy) != square) continue;
        bool show = notes >> 10 & 1;
        if (enemy_kind(enemy) == CRYPTOG && !show && !in_line(square, notes & 63)) return 0;
        u32 flags = 1u << (enemy_kind(enemy) + CH_ENEMY);
        if (enemy & ENEMY_STUNNED) flags |= 1u << CH_STUNNED;
        if (enemy & ENEMY_FROM_SIPHON) flags |= 1u << CH_FROM_SIPHON;
        return flags | enemy_hp(enemy) << 8;
    }
    return 0;
}

HD u32 signal_look(const u32* words, int square) {  // the turns that the first transmission has left
    const u32* signals = words + LISTS_START + 2 * SLOTS;
    for (int slot = 0; slot < SLOTS && signals[slot]; slot++)
        if (square_in(signals[slot]) == square) return smaller(signal_turns(signals[slot]), TURNS_SEEN);
    return 0;
}

// The three words of one cell of a game between steps.
HD void look_at(const u32* words, int number, u32* look) {
    const u32 *boards = words + BOARDS_START, cell = words[LISTS_START + number];
    int square = square_of(number), gate = words[0] >> 12 & 63;
    bool wall = holds(read_board(boards), square), siphoned = holds(read_board(boards + 2), square);
    bool centre = holds(read_board(boards + 4), square), pickup = holds(read_board(boards + 6), square);
    bool question = cell & CELL_QUESTION, plain = wall && !question;
    bool program = plain && cell & CELL_PROGRAM, data = plain && !program;
    u32 resource = wall && !siphoned ? 0 : cell_amount(cell), held = cell_value(cell);
    u32 enemy = enemy_look(words, square), flags = enemy & ((1u << CH_BLOCK) - 1);
    if (wall) flags |= 1u << (CH_BLOCK + (question ? 2 : program ? 1 : 0));
    if (wall && siphoned) flags |= 1u << CH_SIPHONED;
    if (program && held < LATE) flags |= 1u << (held + CH_PROGRAM);
    u32 more = static_cast<u32>(pickup) << 3 | static_cast<u32>(square == gate) << 4 | static_cast<u32>(centre) << 5;
    if (program && held >= LATE) more |= 1u << (held - LATE);
    more |= (data ? held : 0) << 8 | (plain ? cell_spawn(cell) : 0) << 16 | signal_look(words, square) << 24;
    look[0] = flags;
    look[1] = more;
    look[2] = enemy >> 8 | resource << (cell & CELL_ENERGY ? 16 : 8);
}

// Where a channel lies: which of the three words, from which bit, and a mask of its bits; and what it is multiplied by.
struct Place {
    u32 word, shift, bits;
    float factor;
};

// A number is divided by its scale as a product with the reciprocal, in every form of the game.
HD float over(int scale) { return 1.0f / static_cast<float>(scale); }

HD Place place_of(int channel) {
    switch (channel) {
        case CH_ENEMY_HP: return {2, 0, 255, over(MAX_HP)};
        case CH_POINTS: return {1, 8, 255, over(MAX_POINTS)};
        case CH_SPAWN: return {1, 16, 255, over(MAX_POINTS)};
        case CH_TRANSMISSION: return {1, 24, 7, over(TURNS_SEEN)};
        case CH_CREDITS: return {2, 8, 255, over(AMOUNT_SCALE)};
        case CH_ENERGY: return {2, 16, 255, over(AMOUNT_SCALE)};
        case CH_PICKUP: return {1, 3, 1, 1};
        case CH_EXIT: return {1, 4, 1, 1};
        case CH_CENTRE: return {1, 5, 1, 1};
        default: break;
    }
    if (channel >= CH_PROGRAM + LATE) return {1, static_cast<u32>(channel - CH_PROGRAM - LATE), 1, 1};
    return {0, static_cast<u32>(channel), 1, 1};
}

HD float channel_value(const u32* look, const Place& place) {
    return static_cast<float>(static_cast<int>(look[place.word] >> place.shift & place.bits)) * place.factor;
}

HD float scaled(int number, int scale) { return static_cast<float>(number) * over(scale); }

// One of the numbers before the cells.
HD float player_value(const u32* words, int index) {
    u32 notes = words[0];
    switch (index) {
        case 0: return scaled(row_of(notes & 63), SIZE - 1);
        case 1: return scaled(col_of(notes & 63), SIZE - 1);
        case 2: return scaled(notes >> 6 & 3, MAX_HP);
        case 3: return scaled(smaller(words[1], MOST_SEEN), MOST_SEEN);
        case 4: return scaled(smaller(words[2], MOST_SEEN), MOST_SEEN);
        case 5: return scaled(static_cast<int>(words[SCENE_WORDS] & 15) - 1, STAGES - 1);
        case 6: return scaled(words[3], 10);
        case 7: return scaled(static_cast<int>(words[5]) - 1, 2);
        case 8: return static_cast<float>(notes >> 10 & 1);
        case 9: return static_cast<float>(notes >> 11 & 1);
        default: return static_cast<float>(words[7] >> (index - PLAYER_FEATURES) & 1);
    }
}

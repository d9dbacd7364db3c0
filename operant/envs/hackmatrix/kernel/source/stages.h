// A new game, and the board of a new stage.
#pragma once
#include "legality.h"
#include "spawning.h"

HD int corner(int index) { return (index & 1 ? 5 : 0) + (index & 2 ? 40 : 0); }

HD int draw_exit(const Source& source, int at) {  // a corner that is not the player's
    int mine = (row_of(at) >= SIZE / 2 ? 2 : 0) + (col_of(at) != 0), drawn = source.pick(AT_EXIT, 3);
    return corner(drawn + (drawn >= mine));
}

// The words of a game before its first stage is laid out: the player on a corner, with one bonus.
HD void new_game(u32 high, u32 low, u32* words) {
    Source source = {high, low, 0};
    for (int index = 0; index < GAME_WORDS; index++) words[index] = 0;
    int bonus = source.pick(AT_BONUS, 3);
    words[0] = corner(source.pick(AT_CORNER, 4)) | START_HP << 6;
    words[1] = bonus == 0 ? BONUS_CREDITS : 0;
    words[2] = bonus == 1 ? BONUS_ENERGY : 0;
    words[3] = bonus == 2 ? BONUS_SIPHONS : 0;
    words[5] = START_ATTACK;
    u32* rest = words + SCENE_WORDS;
    rest[0] = 1 | FIRST_INTERVAL << 11;
    rest[4] = high, rest[5] = low, rest[6] = 1;
}

// Squares of the blocks in the order drawn, those of the first valid attempt of a hundred; how many there are, 0 if no
// attempt is valid.
HD int draw_layout(const Source& source, Board eligible, int exit_at, unsigned char* squares) {
    unsigned char list[CELLS], swapped[MAX_BLOCKS];
    int most = 0;
    for (Board left = eligible; left; left &= left - 1) list[most++] = first(left);
    int number = smaller(MIN_BLOCKS + source.pick(AT_BLOCKS, MAX_BLOCKS - MIN_BLOCKS + 1), most);
    for (int attempt = 0; attempt < BLOCK_ATTEMPTS; attempt++) {
        Board blocks = 0;
        for (int b = 0; b < number; b++) {
            int other = b + source.pick(AT_ATTEMPT + 16 * attempt + b, most - b);
            unsigned char square = list[other];
            list[other] = list[b], list[b] = square, swapped[b] = other;
            blocks |= bit(square);
        }
        if (is_connected(blocks, exit_at) && is_siphonable(blocks)) {
            for (int b = 0; b < number; b++) squares[b] = list[b];
            return number;
        }
        for (int b = number - 1; b >= 0; b--) {
            unsigned char square = list[b];
            list[b] = list[swapped[b]], list[swapped[b]] = square;
        }
    }
    return 0;
}

// The word of a cell with a block. A program is one that no earlier block of the stage has.
HD u32 draw_content(const Source& source, int address, u32& left) {
    bool is_program = source.pick(address, 2) == 1;
    u32 question = source.pick(address + 1, QUESTION_ODDS) == 0 ? CELL_QUESTION : 0;
    if (!is_program) {
        u32 points = 1 + source.pick(address + 2, MAX_POINTS);
        return question | points << 16 | points << 24;
    }
    int program = nth(left, source.pick(address + 3, count(left)));
    left &= ~(1u << program);
    return CELL_PROGRAM | question | program << 16 | spawn_of(program) << 24;
}

HD u32 draw_resource(const Source& source, int cell) {
    int drawn = source.pick(AT_RESOURCE + 2 * cell, AMOUNT_ODDS);
    u32 amount = 1 + (drawn >= FIRST_TWO) + (drawn >= FIRST_THREE);
    return amount | (source.pick(AT_RESOURCE + 2 * cell + 1, 2) == 1 ? CELL_ENERGY : 0);
}

HD void fill(Game& game, const Source& source, const unsigned char* squares, int number) {
    u32 programs = (1u << PROGRAM_COUNT) - 1;
    game.blocks = 0;
    for (int b = 0; b < number; b++) {
        game.blocks |= bit(squares[b]);
        game.cells[cell_of(squares[b])] = draw_content(source, AT_CONTENT + 4 * b, programs);
    }
    for (int cell = 0; cell < CELLS; cell++) {
        int square = square_of(cell);
        if (square == game.gate) game.cells[cell] = 0;
        else if (!holds(game.blocks, square)) game.cells[cell] = draw_resource(source, cell);
    }
}

// A fresh board, drawn at the event just finished. Enemies, transmissions, history, player and programs stay.
HD void lay_out(Game& game) {
    Source source = {game.source.high, game.source.low, game.source.event - 1};
    game.exit = game.gate = draw_exit(source, game.at);
    Board others = where_they_are(game.enemies), signals = where_they_are(game.signals);
    unsigned char squares[MAX_BLOCKS];
    int number = draw_layout(source, FULL & ~(CORNERS | others | signals), game.exit, squares);
    fill(game, source, squares, number);
    Room left = room(game.at, others | game.blocks, signals);
    int slot = length(game.signals);
    for (int j = 0; j < game.stage && slot < SLOTS; j++, slot++) {
        u32 signal = spawn(source, AT_STAGE_SPAWN + 2 * j, left, 0);
        if (!signal) break;
        game.signals[slot] = signal;
    }
    game.turn = game.show = game.calm = game.attack_uses = game.skip = 0;
    game.siphoned = game.centres = 0;
    game.pickups = CORNERS & ~(bit(game.at) | bit(game.exit));
    game.next_task = game.interval;
}

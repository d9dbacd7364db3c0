// Where a transmission appears: best out of the player's line of fire, else on any free cell.
#pragma once
#include "game.h"

struct Room {
    Board free, exposed;
};

HD Room room(int at, Board shields, Board signals) {
    return Room{FULL & ~(shields | signals | bit(at)), line_of_fire(at, shields)};
}

// One transmission, its cell drawn at an address and its type at the next one; 0 if no cell is free.
HD u32 spawn(const Source& source, int address, Room& left, u32 origin) {
    Board hidden = left.free & ~left.exposed, candidates = hidden ? hidden : left.free;
    if (!candidates) return 0;
    int square = nth(candidates, source.pick(address, count(candidates)));
    left.free &= ~bit(square);
    return square | origin | source.pick(address + 1, ENEMY_KINDS) << 8 | SIGNAL_ALIVE | 1u << 16;
}

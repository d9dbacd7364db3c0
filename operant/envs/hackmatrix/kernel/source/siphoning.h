// The siphon: what the cross around the player gives, and what a better place would have given.
#pragma once
#include "game.h"

struct Missed {
    int credits, energy;
};

// What siphoning from a cell would give. Data counts by blocks, programs are the new ones as bits.
struct Yield {
    int credits, energy, data;
    u32 programs;
};

HD Yield yield_of(const Game& game, int square) {
    Yield yield = {0, 0, 0, 0};
    if (holds(game.blocks, square)) return yield;
    for (Board cross = grow(bit(square), FULL) & ~game.siphoned; cross; cross &= cross - 1) {
        int there = first(cross);
        u32 cell = game.cells[cell_of(there)];
        if (!holds(game.blocks, there)) (cell & CELL_ENERGY ? yield.energy : yield.credits) += cell_amount(cell);
        else if (cell & CELL_PROGRAM) yield.programs |= (1u << (cell_value(cell) & 31)) & ~game.owned;
        else yield.data++;
    }
    return yield;
}

// The cells adjacent to every unsiphoned block of the player's cross.
HD Board beside_the_same_blocks(const Game& game) {
    Board beside = FULL, around = grow(bit(game.at), FULL) & ~bit(game.at);
    for (Board blocks = around & game.blocks & ~game.siphoned; blocks; blocks &= blocks - 1) {
        Board block = bit(first(blocks));
        beside &= grow(block, FULL) & ~block;
    }
    return beside;
}

// Credits and energy by which the better places exceed the player's, each at its largest. A place that counts lies
// beside all blocks of the player's own cross, so counting the blocks is enough to compare them.
HD Missed missed(const Game& game) {
    Yield own = yield_of(game, game.at);
    Missed most = {0, 0};
    Board rivals = (own.data || own.programs ? beside_the_same_blocks(game) : FULL) & ~game.blocks;
    for (; rivals; rivals &= rivals - 1) {
        Yield offer = yield_of(game, first(rivals));
        if (offer.data != own.data || offer.programs != own.programs) continue;
        if (offer.credits < own.credits || offer.energy < own.energy) continue;
        most.credits = larger(most.credits, offer.credits - own.credits);
        most.energy = larger(most.energy, offer.energy - own.energy);
    }
    return most;
}

HD Missed siphon(Game& game) {
    Missed most = missed(game);
    Board cross = grow(bit(game.at), FULL) & ~game.siphoned;
    for (Board left = cross; left; left &= left - 1) {
        int square = first(left);
        u32& cell = game.cells[cell_of(square)];
        if (!holds(game.blocks, square)) {
            (cell & CELL_ENERGY ? game.energy : game.credits) += cell_amount(cell);
            cell &= ~RESOURCE_BITS;
            continue;
        }
        if (cell & CELL_PROGRAM) game.owned |= 1u << (cell_value(cell) & 31);
        else game.score += cell_value(cell);
        game.pending += cell_spawn(cell);
        cell &= 0xFFFFFFu & ~CELL_QUESTION;
    }
    game.siphoned |= cross;
    game.centres |= bit(game.at);
    game.siphons--;
    game.interval = larger(game.interval - 1, MIN_INTERVAL);
    game.next_task += SIPHON_DELAY;
    return most;
}

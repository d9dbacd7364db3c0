// Sets of cells as bits of one number, a byte a row, and paths over them. A cell is named by its square,
// 8 * row + column.
// Nothing here or in the other headers includes a library, so that a compiler for GPUs alone can take them.
#pragma once
#include "constants.h"

#ifdef __CUDACC__
#define HD __host__ __device__ inline
#define HD_APART static __host__ __device__ __noinline__
#else
#define HD inline
#define HD_APART static __attribute__((noinline))
#endif

typedef unsigned int u32;
typedef unsigned long long u64;
typedef u64 Board;

constexpr int ROW_BITS = 8;
constexpr int WORD_SQUARES = 24;  // squares of one word of a state
constexpr Board FULL = 0x3F3F3F3F3F3FULL;
constexpr Board CORNERS = 1ULL | 1ULL << 5 | 1ULL << 40 | 1ULL << 45;
constexpr int STAY = 0;
constexpr int FAR = 64;      // more than any distance
constexpr int LONGEST = 23;  // steps of the longest shortest path

HD Board bit(int square) { return 1ULL << square; }
HD bool holds(Board board, int square) { return board >> square & 1; }
HD int row_of(int square) { return square >> 3; }
HD int col_of(int square) { return square & 7; }
HD int square_of(int cell) { return ROW_BITS * (cell / SIZE) + cell % SIZE; }
HD int cell_of(int square) { return SIZE * row_of(square) + col_of(square); }
HD int sign(int number) { return (number > 0) - (number < 0); }
HD int absolute(int number) { return number < 0 ? -number : number; }
HD int smaller(int a, int b) { return a < b ? a : b; }
HD int larger(int a, int b) { return a > b ? a : b; }
HD int manhattan(int a, int b) { return absolute(row_of(a) - row_of(b)) + absolute(col_of(a) - col_of(b)); }
HD bool in_line(int a, int b) { return row_of(a) == row_of(b) || col_of(a) == col_of(b); }
HD bool is_on_board(int square) { return square >= 0 && square < ROW_BITS * SIZE && col_of(square) < SIZE; }

HD int count(u64 bits) {
#ifdef __CUDA_ARCH__
    return __popcll(bits);
#else
    return __builtin_popcountll(bits);
#endif
}

HD int first(u64 bits) {  // the place of the lowest bit of a set that is not empty
#ifdef __CUDA_ARCH__
    return __ffsll(static_cast<long long>(bits)) - 1;
#else
    return __builtin_ctzll(bits);
#endif
}

// The place of the n-th bit, by halves.
HD int nth(u64 bits, int n) {
    int place = 0;
    for (int half = 32; half; half >>= 1) {
        int below = count(bits & ((1ULL << half) - 1));
        if (n >= below) {
            n -= below;
            place += half;
            bits >>= half;
        }
    }
    return place;
}

HD int step_of(int direction) {  // what a direction adds to a square
    return direction == UP ? ROW_BITS : direction == DOWN ? -ROW_BITS : direction == LEFT ? -1 : 1;
}

HD Board moved(Board board, int direction) {  // what leaves the board is gone
    int step = step_of(direction);
    return (step > 0 ? board << step : board >> -step) & FULL;
}

// The set and its neighbours as far as they are in `within`, itself a part of the board.
HD Board grow(Board board, Board within) {
    return (board | board << 1 | board >> 1 | board << ROW_BITS | board >> ROW_BITS) & within;
}

HD Board eight(int square) {  // the cells at Chebyshev distance 1
    Board here = bit(square), row = here | moved(here, LEFT) | moved(here, RIGHT);
    return (row | moved(row, UP) | moved(row, DOWN)) & ~here;
}

HD Board row_board(int square) { return 0x3FULL << ROW_BITS * row_of(square); }
HD Board col_board(int square) { return 0x010101010101ULL << col_of(square); }

// Steps between two cells around the blocks, 0 when there is no way; start and goal may be blocks.
HD int distance(int start, int goal, Board blocks) {
    Board target = bit(goal), within = (FULL & ~blocks) | target, reached = bit(start);
    int length = 0;
    while (!(reached & target) && length < LONGEST) {
        Board more = grow(reached, within);
        if (more == reached) return 0;
        reached = more;
        length++;
    }
    return reached & target ? length : 0;
}

HD int first_way(int start, Board ends) {  // the first direction, in order, that leads into a set
    for (int direction = 0; direction < 4; direction++)
        if (moved(bit(start), direction) & ends) return step_of(direction);
    return STAY;
}

// The first step of the shortest path over enterable cells, of which the goal is one, as what it adds to the square.
HD int toward(int start, int goal, Board enterable) {
    if (start == goal) return STAY;
    Board near = grow(bit(start), enterable) & ~bit(start), reached = bit(goal) & enterable;
    for (int turn = 1; turn < LONGEST && !(reached & near); turn++) {
        Board more = grow(reached, enterable);
        if (more == reached) return STAY;
        reached = more;
    }
    return first_way(start, reached & near);
}

// Whether (0,0) reaches every cell that is no block, without passing through an exit other than itself.
HD bool is_connected(Board blocks, int exit_at) {
    Board within = FULL & ~blocks, dead_end = bit(exit_at) & ~bit(0), reached = bit(0) & within;
    for (int turn = 0; turn < LONGEST; turn++) {
        Board more = reached | grow(reached & ~dead_end, within);
        if (more == reached) break;
        reached = more;
    }
    return within == reached;
}

HD bool is_siphonable(Board blocks) { return !(blocks & ~grow(FULL & ~blocks, FULL)); }

// The cells in the player's row and column up to and with the first shield in each direction.
HD Board line_of_fire(int at, Board shields) {
    Board exposed = 0;
    for (int direction = 0; direction < 4; direction++) {
        Board edge = moved(bit(at), direction);
        while (edge) {
            exposed |= edge;
            edge = moved(edge & ~shields, direction);
        }
    }
    return exposed;
}

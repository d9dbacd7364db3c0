// The kernels for GPUs: a warp plays 32 games, one a thread, whose words lie in shared memory from the first read to
// the last write. What is seen of a game is then written by the whole warp, since a row of it is 6 kB long.
#pragma once
#include "buffers.h"
#include "observation.h"

namespace gpu {

constexpr int WARP = 32;
constexpr u32 ALL = 0xFFFFFFFFu;
// What a warp shares. The odd length of a game's words keeps threads that read the same word of 32 games apart.
struct Shared {
    u32 rows[WARP * GAME_WORDS];
    u32 looks[LOOK_WORDS];
    Place places[CHANNELS];
};
static_assert(GAME_WORDS % 2 == 1, "rows of an even length meet in the banks of the memory");

struct Block {
    size_t start;
    int here, lane;  // games of this warp, and the number of this thread

    __device__ Block(size_t games) : start(static_cast<size_t>(blockIdx.x) * WARP), lane(threadIdx.x) {
        here = games - start < WARP ? static_cast<int>(games - start) : WARP;
    }
    __device__ bool mine() const { return lane < here; }
    __device__ size_t game() const { return start + lane; }
};

__device__ void prepare(Shared& shared, const Block& block) {
    for (int channel = block.lane; channel < CHANNELS; channel += WARP) shared.places[channel] = place_of(channel);
    __syncwarp();
}

__device__ void load(Shared& shared, const Block& block, const u32* states) {
    const u32* from = states + block.start * GAME_WORDS;
    for (int index = block.lane; index < block.here * GAME_WORDS; index += WARP) shared.rows[index] = from[index];
    __syncwarp();
}

__device__ void store(const Shared& shared, const Block& block, u32* states) {
    __syncwarp();
    u32* to = states + block.start * GAME_WORDS;
    for (int index = block.lane; index < block.here * GAME_WORDS; index += WARP) to[index] = shared.rows[index];
}

// Write what is seen of one game after the other, those of a set of threads, to one place or two.
__device__ void show(Shared& shared, const Block& block, u32 which, float* seen, float* also) {
    for (; which; which &= which - 1) {
        int game = __ffs(which) - 1;
        const u32* words = shared.rows + game * GAME_WORDS;
        __syncwarp();
        for (int cell = block.lane; cell < CELLS; cell += WARP) look_at(words, cell, shared.looks + 3 * cell);
        __syncwarp();
        size_t row = (block.start + game) * OBSERVATION_SIZE;
        for (int index = block.lane; index < FIRST_CELL; index += WARP) {
            float value = player_value(words, index);
            seen[row + index] = value;
            if (also) also[row + index] = value;
        }
        const u32* look = shared.looks;
        for (int index = FIRST_CELL + block.lane, channel = block.lane; index < OBSERVATION_SIZE; index += WARP) {
            float value = channel_value(look, shared.places[channel]);
            seen[row + index] = value;
            if (also) also[row + index] = value;
            channel += WARP;
            if (channel >= CHANNELS) channel -= CHANNELS, look += 3;
        }
    }
    __syncwarp();
}

__device__ void remember(const Shared& shared, const Block& block, u32 which, u32* histories) {
    __syncwarp();
    for (; which; which &= which - 1) {
        int game = __ffs(which) - 1;
        const u32* words = shared.rows + game * GAME_WORDS;
        u32* row = histories + (block.start + game) * HISTORY_WORDS + newest_row(words) * SCENE_WORDS;
        for (int index = block.lane; index < SCENE_WORDS; index += WARP) row[index] = snapshot_word(words, index);
    }
}

__global__ void __launch_bounds__(WARP) step_kernel(Steps steps) {
    __shared__ Shared shared;
    const Block block(steps.games);
    prepare(shared, block);
    load(shared, block, steps.states);
    u32* words = shared.rows + block.lane * GAME_WORDS;
    bool over = false, next_stage = false, remembers = false;
    if (block.mine()) {
        u32* history = steps.next_histories + block.game() * HISTORY_WORDS;
        Report report = play(words, history, steps.actions[block.game()], steps.limit);
        tell(steps, report, block.game());
        remembers = report.remembers, next_stage = report.next_stage;
        over = steps.first_seen && (report.terminated || report.truncated);
    }
    remember(shared, block, __ballot_sync(ALL, remembers), steps.next_histories);
    // All boards at once, next stages and new games, since threads of a warp wait for each other. A game may need both,
    // when time runs out on the step that completes a stage.
    bool anew = over && !next_stage, both = over && next_stage;
    u32 ended = __ballot_sync(ALL, anew), twice = __ballot_sync(ALL, both);
    u32 going = __ballot_sync(ALL, block.mine() && !over);
    show(shared, block, ended, steps.seen, nullptr);
    if (anew) new_game(steps.keys[2 * block.game()], steps.keys[2 * block.game() + 1], words);
    if (anew || next_stage) lay_out_words(words);
    show(shared, block, going, steps.seen, steps.first_seen);
    show(shared, block, ended, steps.first_seen, nullptr);
    show(shared, block, twice, steps.seen, nullptr);
    if (both) begin_anew(steps, block.game(), words);
    show(shared, block, twice, steps.first_seen, nullptr);
    store(shared, block, steps.next_states);
}

__global__ void __launch_bounds__(WARP) reset_kernel(const u32* keys, u32* states, float* seen, size_t games) {
    __shared__ Shared shared;
    const Block block(games);
    prepare(shared, block);
    if (block.mine()) {
        u32* words = shared.rows + block.lane * GAME_WORDS;
        new_game(keys[2 * block.game()], keys[2 * block.game() + 1], words);
        lay_out_words(words);
    }
    show(shared, block, __ballot_sync(ALL, block.mine()), seen, nullptr);
    store(shared, block, states);
}

__global__ void __launch_bounds__(WARP) observe_kernel(const u32* states, float* seen, size_t games) {
    __shared__ Shared shared;
    const Block block(games);
    prepare(shared, block);
    load(shared, block, states);
    show(shared, block, __ballot_sync(ALL, block.mine()), seen, nullptr);
}

__global__ void __launch_bounds__(WARP) mask_kernel(const u32* states, bool* masks, size_t games) {
    __shared__ u32 rows[WARP * GAME_WORDS];
    __shared__ bool found[WARP * ACTION_COUNT];
    const Block block(games);
    const u32* from = states + block.start * GAME_WORDS;
    for (int index = block.lane; index < block.here * GAME_WORDS; index += WARP) rows[index] = from[index];
    __syncwarp();
    if (block.mine()) write_mask(read_game(rows + block.lane * GAME_WORDS), found + block.lane * ACTION_COUNT);
    __syncwarp();
    bool* to = masks + block.start * ACTION_COUNT;
    for (int index = block.lane; index < block.here * ACTION_COUNT; index += WARP) to[index] = found[index];
}

// Put all kernels on the GPUs: nothing may be loaded while XLA records what it launches.
inline cudaError_t load_kernels(int devices) {
    int before = 0;
    cudaFuncAttributes found;
    const void* kernels[] = {reinterpret_cast<const void*>(step_kernel), reinterpret_cast<const void*>(reset_kernel),
                             reinterpret_cast<const void*>(observe_kernel), reinterpret_cast<const void*>(mask_kernel)};
    cudaError_t error = cudaGetDevice(&before);
    for (int device = 0; device < devices && error == cudaSuccess; device++) {
        error = cudaSetDevice(device);
        for (const void* kernel : kernels)
            if (error == cudaSuccess) error = cudaFuncGetAttributes(&found, kernel);
    }
    cudaSetDevice(before);
    return error;
}

inline unsigned blocks_of(size_t games) { return static_cast<unsigned>((games + WARP - 1) / WARP); }

inline ffi::Error launched(cudaError_t error) {
    return error == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(error));
}

inline ffi::Error Mask(cudaStream_t stream, Words states, Out<Flags> masks) {
    size_t games = states.element_count() / GAME_WORDS;
    if (games) mask_kernel<<<blocks_of(games), WARP, 0, stream>>>(states.typed_data(), masks->typed_data(), games);
    return launched(cudaGetLastError());
}

inline ffi::Error Observe(cudaStream_t stream, Words states, Out<Numbers> seen) {
    size_t games = states.element_count() / GAME_WORDS;
    if (games) observe_kernel<<<blocks_of(games), WARP, 0, stream>>>(states.typed_data(), seen->typed_data(), games);
    return launched(cudaGetLastError());
}

inline ffi::Error Reset(cudaStream_t stream, Words keys, Out<Words> states, Out<Numbers> seen) {
    size_t games = keys.element_count() / 2;
    u32* words = states->typed_data();
    if (games) reset_kernel<<<blocks_of(games), WARP, 0, stream>>>(keys.typed_data(), words, seen->typed_data(), games);
    return launched(cudaGetLastError());
}

inline ffi::Error run(cudaStream_t stream, const Steps& steps) {
    cudaError_t error = cudaSuccess;
    size_t size = steps.games * HISTORY_WORDS * sizeof(u32);
    if (steps.next_histories != steps.histories)
        error = cudaMemcpyAsync(steps.next_histories, steps.histories, size, cudaMemcpyDeviceToDevice, stream);
    if (error == cudaSuccess && steps.games) {
        step_kernel<<<blocks_of(steps.games), WARP, 0, stream>>>(steps);
        error = cudaGetLastError();
    }
    return launched(error);
}

inline ffi::Error Step(cudaStream_t stream, Words states, Words histories, Actions actions, int limit,
                       Out<Words> next_states, Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated,
                       Out<Flags> truncated, ffi::RemainingRets numbers) {
    return run(stream, steps_of(states, histories, actions, limit, next_states, next_histories, seen, terminated,
                                truncated, numbers));
}

inline ffi::Error Advance(cudaStream_t stream, Words states, Words histories, Actions actions, Words keys, int limit,
                          Out<Words> next_states, Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated,
                          Out<Flags> truncated, Out<Numbers> first_seen, ffi::RemainingRets numbers) {
    Steps steps =
        steps_of(states, histories, actions, limit, next_states, next_histories, seen, terminated, truncated, numbers);
    steps.keys = keys.typed_data(), steps.first_seen = first_seen->typed_data();
    return run(stream, steps);
}

}  // namespace gpu

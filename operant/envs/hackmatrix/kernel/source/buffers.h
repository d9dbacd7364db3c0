// What XLA hands to a kernel. All leading axes of a buffer are games, so a call may be batched in any way.
#pragma once
#include "step.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Words = ffi::Buffer<ffi::U32>;
using Numbers = ffi::Buffer<ffi::F32>;
using Flags = ffi::Buffer<ffi::PRED>;
using Actions = ffi::Buffer<ffi::S32>;
template <typename Kind>
using Out = ffi::Result<Kind>;

constexpr int SUMMARY = 3;  // reward, stage and won, which come before the parts

// The buffers of one step of many games. Those of keys and of what is seen first are there only where games begin anew.
struct Steps {
    const u32 *states, *histories, *keys;
    const int* actions;
    u32 *next_states, *next_histories;
    float *seen, *first_seen;
    bool *terminated, *truncated;
    float* numbers[SUMMARY + PARTS];
    int limit;
    size_t games;
};

inline Steps steps_of(Words states, Words histories, Actions actions, int limit, Out<Words> next_states,
                      Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated, Out<Flags> truncated,
                      ffi::RemainingRets numbers) {
    Steps steps = {};
    steps.states = states.typed_data(), steps.next_states = next_states->typed_data();
    steps.histories = histories.typed_data(), steps.next_histories = next_histories->typed_data();
    steps.actions = actions.typed_data(), steps.seen = seen->typed_data();
    steps.terminated = terminated->typed_data(), steps.truncated = truncated->typed_data();
    for (int index = 0; index < SUMMARY + PARTS; index++)
        steps.numbers[index] = (*numbers.get<Numbers>(index))->typed_data();
    steps.limit = limit, steps.games = actions.element_count();
    return steps;
}

HD void tell(const Steps& steps, const Report& report, size_t game) {
    steps.terminated[game] = report.terminated;
    steps.truncated[game] = report.truncated;
    steps.numbers[0][game] = report.reward;
    steps.numbers[1][game] = static_cast<float>(report.stage);
    steps.numbers[2][game] = report.won ? 1.0f : 0.0f;
    for (int part = 0; part < PARTS; part++) steps.numbers[SUMMARY + part][game] = report.parts[part];
}

HD void begin_anew(const Steps& steps, size_t game, u32* words) {
    new_game(steps.keys[2 * game], steps.keys[2 * game + 1], words);
    lay_out_words(words);
}

// The kernels for processors: a loop over games, as functions that XLA calls.
// All leading axes of the buffers are games, so a call may be batched in any way.
#pragma once
#include <cstring>

#include "buffers.h"
#include "observation.h"
#include "step.h"

namespace cpu {

void observe(const u32* words, float* seen) {
    u32 looks[LOOK_WORDS];
    for (int cell = 0; cell < CELLS; cell++) look_at(words, cell, looks + 3 * cell);
    for (int index = 0; index < FIRST_CELL; index++) seen[index] = player_value(words, index);
    float* grid = seen + FIRST_CELL;
    for (int channel = 0; channel < CHANNELS; channel++) {
        Place place = place_of(channel);
        for (int cell = 0; cell < CELLS; cell++) grid[CHANNELS * cell + channel] = channel_value(looks + 3 * cell, place);
    }
}

void remember(const u32* words, u32* history) {
    u32* row = history + (words[SCENE_WORDS] >> 23 & 7) * SCENE_WORDS;
    for (int index = 0; index < SCENE_WORDS; index++) row[index] = snapshot_word(words, index);
}

template <typename Number> void copy(Number* to, const Number* from, size_t count) {
    if (to != from) std::memcpy(to, from, count * sizeof(Number));
}

ffi::Error Mask(Words states, Out<Flags> masks) {
    size_t games = states.element_count() / GAME_WORDS;
    for (size_t game = 0; game < games; game++) {
        u32 words[GAME_WORDS];
        copy(words, states.typed_data() + game * GAME_WORDS, GAME_WORDS);
        write_mask(read_game(words), masks->typed_data() + game * ACTION_COUNT);
    }
    return ffi::Error::Success();
}

ffi::Error Observe(Words states, Out<Numbers> seen) {
    size_t games = states.element_count() / GAME_WORDS;
    for (size_t game = 0; game < games; game++)
        observe(states.typed_data() + game * GAME_WORDS, seen->typed_data() + game * OBSERVATION_SIZE);
    return ffi::Error::Success();
}

ffi::Error Reset(Words keys, Out<Words> states, Out<Numbers> seen) {
    size_t games = keys.element_count() / 2;
    for (size_t game = 0; game < games; game++) {
        u32* words = states->typed_data() + game * GAME_WORDS;
        new_game(keys.typed_data()[2 * game], keys.typed_data()[2 * game + 1], words);
        lay_out_words(words);
        observe(words, seen->typed_data() + game * OBSERVATION_SIZE);
    }
    return ffi::Error::Success();
}

// The numbers that a step came to, each a buffer of its own: reward, stage, won, then the fifteen parts.
void tell(const Report& report, size_t game, const ffi::RemainingRets& numbers) {
    const float first[] = {report.reward, static_cast<float>(report.stage), report.won ? 1.0f : 0.0f};
    for (int index = 0; index < 3; index++) (*numbers.get<Numbers>(index))->typed_data()[game] = first[index];
    for (int part = 0; part < PARTS; part++) (*numbers.get<Numbers>(3 + part))->typed_data()[game] = report.parts[part];
}

ffi::Error Step(Words states, Words histories, Actions actions, int limit, Out<Words> next_states, Out<Words> next_histories,
                Out<Numbers> seen, Out<Flags> terminated, Out<Flags> truncated, ffi::RemainingRets numbers) {
    copy(next_states->typed_data(), states.typed_data(), states.element_count());
    copy(next_histories->typed_data(), histories.typed_data(), histories.element_count());
    for (size_t game = 0; game < actions.element_count(); game++) {
        u32 *words = next_states->typed_data() + game * GAME_WORDS, *history = next_histories->typed_data() + game * HISTORY_WORDS;
        Report report = play(words, history, actions.typed_data()[game], limit);
        if (report.remembers) remember(words, history);
        if (report.next_stage) lay_out_words(words);
        observe(words, seen->typed_data() + game * OBSERVATION_SIZE);
        terminated->typed_data()[game] = report.terminated;
        truncated->typed_data()[game] = report.truncated;
        tell(report, game, numbers);
    }
    return ffi::Error::Success();
}

ffi::Error Advance(Words states, Words histories, Actions actions, Words keys, int limit, Out<Words> next_states,
                   Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated, Out<Flags> truncated, Out<Numbers> first_seen,
                   ffi::RemainingRets numbers) {
    copy(next_states->typed_data(), states.typed_data(), states.element_count());
    copy(next_histories->typed_data(), histories.typed_data(), histories.element_count());
    for (size_t game = 0; game < actions.element_count(); game++) {
        u32 *words = next_states->typed_data() + game * GAME_WORDS, *history = next_histories->typed_data() + game * HISTORY_WORDS;
        float *final = seen->typed_data() + game * OBSERVATION_SIZE, *next = first_seen->typed_data() + game * OBSERVATION_SIZE;
        Report report = play(words, history, actions.typed_data()[game], limit);
        if (report.remembers) remember(words, history);
        if (report.next_stage) lay_out_words(words);
        observe(words, final);
        terminated->typed_data()[game] = report.terminated;
        truncated->typed_data()[game] = report.truncated;
        tell(report, game, numbers);
        if (report.terminated || report.truncated) {
            new_game(keys.typed_data()[2 * game], keys.typed_data()[2 * game + 1], words);
            lay_out_words(words);
            observe(words, next);
        } else {
            copy(next, final, OBSERVATION_SIZE);
        }
    }
    return ffi::Error::Success();
}

}  // namespace cpu

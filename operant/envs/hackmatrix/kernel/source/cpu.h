// The kernels for processors: a loop over games, as functions that XLA calls.
// All leading axes of the buffers are games, so a call may be batched in any way.
#pragma once
#include <cstring>

#include "buffers.h"
#include "observation.h"
#include "step.h"

namespace cpu {

// Most numbers are 0, so those that are not are put into an empty row.
void observe(const u32* words, float* seen) {
    std::memset(seen, 0, OBSERVATION_SIZE * sizeof(float));
    for (int index = 0; index < FIRST_CELL; index++) seen[index] = player_value(words, index);
    float* channels = seen + FIRST_CELL;
    for (int cell = 0; cell < CELLS; cell++, channels += CHANNELS) {
        u32 look[3];
        look_at(words, cell, look);
        for (u32 flags = look[0]; flags; flags &= flags - 1) channels[first(flags)] = 1.0f;
        if (!look[1] && !look[2]) continue;
        for (int channel : {CH_ENEMY_HP, CH_POINTS}) channels[channel] = channel_value(look, place_of(channel));
        for (int channel = 32; channel < CHANNELS; channel++) channels[channel] = channel_value(look, place_of(channel));
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

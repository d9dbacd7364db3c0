// The kernels for processors: loops over games, those of steps shared by the threads that XLA has.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "buffers.h"
#include "observation.h"

namespace cpu {

// Most numbers are 0, so those that are not are put into an empty row.
inline void observe(const u32* words, float* seen) {
    std::memset(seen, 0, OBSERVATION_SIZE * sizeof(float));
    for (int index = 0; index < FIRST_CELL; index++) seen[index] = player_value(words, index);
    float* channels = seen + FIRST_CELL;
    for (int cell = 0; cell < CELLS; cell++, channels += CHANNELS) {
        u32 look[3];
        look_at(words, cell, look);
        for (u32 flags = look[0]; flags; flags &= flags - 1) channels[first(flags)] = 1.0f;
        if (!look[1] && !look[2]) continue;
        for (int channel : {CH_ENEMY_HP, CH_POINTS}) channels[channel] = channel_value(look, place_of(channel));
        for (int channel = CH_PROGRAM + LATE; channel < CHANNELS; channel++)
            channels[channel] = channel_value(look, place_of(channel));
    }
}

inline void remember(const u32* words, u32* history) {
    u32* row = history + newest_row(words) * SCENE_WORDS;
    for (int index = 0; index < SCENE_WORDS; index++) row[index] = snapshot_word(words, index);
}

template <typename Number>
void copy(Number* to, const Number* from, size_t count) {
    if (to != from) std::memcpy(to, from, count * sizeof(Number));
}

inline ffi::Error Mask(Words states, Out<Flags> masks) {
    size_t games = states.element_count() / GAME_WORDS;
    for (size_t game = 0; game < games; game++) {
        u32 words[GAME_WORDS];
        copy(words, states.typed_data() + game * GAME_WORDS, GAME_WORDS);
        write_mask(read_game(words), masks->typed_data() + game * ACTION_COUNT);
    }
    return ffi::Error::Success();
}

inline ffi::Error Observe(Words states, Out<Numbers> seen) {
    size_t games = states.element_count() / GAME_WORDS;
    for (size_t game = 0; game < games; game++)
        observe(states.typed_data() + game * GAME_WORDS, seen->typed_data() + game * OBSERVATION_SIZE);
    return ffi::Error::Success();
}

inline ffi::Error Reset(Words keys, Out<Words> states, Out<Numbers> seen) {
    size_t games = keys.element_count() / 2;
    for (size_t game = 0; game < games; game++) {
        u32* words = states->typed_data() + game * GAME_WORDS;
        new_game(keys.typed_data()[2 * game], keys.typed_data()[2 * game + 1], words);
        lay_out_words(words);
        observe(words, seen->typed_data() + game * OBSERVATION_SIZE);
    }
    return ffi::Error::Success();
}

constexpr size_t SHARE = 64;  // games that a thread takes at a time

struct Progress {
    std::atomic<size_t> taken{0}, done{0};
};

// Do some work on all games. Other threads help as far as they are free; who comes late finds nothing left to take,
// so the caller waits only for what others are at, and never for a thread that has not begun.
template <typename Work>
void share(ffi::ThreadPool& pool, size_t games, const Work& work) {
    size_t shares = (games + SHARE - 1) / SHARE, threads = static_cast<size_t>(pool.num_threads());
    auto progress = std::make_shared<Progress>();
    auto help = [progress, shares, games, &work] {
        for (size_t mine; (mine = progress->taken++) < shares; progress->done++)
            work(mine * SHARE, mine + 1 == shares ? games : (mine + 1) * SHARE);
    };
    for (size_t helper = 1; helper < threads && helper < shares; helper++) pool.Schedule([help] { help(); });
    help();
    while (progress->done < shares) std::this_thread::yield();
}

inline void play_some(const Steps& steps, size_t begin, size_t end) {
    copy(steps.next_states + begin * GAME_WORDS, steps.states + begin * GAME_WORDS, (end - begin) * GAME_WORDS);
    copy(steps.next_histories + begin * HISTORY_WORDS, steps.histories + begin * HISTORY_WORDS,
         (end - begin) * HISTORY_WORDS);
    for (size_t game = begin; game < end; game++) {
        u32* words = steps.next_states + game * GAME_WORDS;
        u32* history = steps.next_histories + game * HISTORY_WORDS;
        float* seen = steps.seen + game * OBSERVATION_SIZE;
        Report report = play(words, history, steps.actions[game], steps.limit);
        tell(steps, report, game);
        if (report.remembers) remember(words, history);
        if (report.next_stage) lay_out_words(words);
        observe(words, seen);
        if (!steps.first_seen) continue;
        float* first_seen = steps.first_seen + game * OBSERVATION_SIZE;
        if (report.terminated || report.truncated) {
            begin_anew(steps, game, words);
            observe(words, first_seen);
        } else {
            copy(first_seen, seen, OBSERVATION_SIZE);
        }
    }
}

inline ffi::Error run(ffi::ThreadPool& pool, const Steps& steps) {
    share(pool, steps.games, [&steps](size_t begin, size_t end) { play_some(steps, begin, end); });
    return ffi::Error::Success();
}

inline ffi::Error Step(ffi::ThreadPool pool, Words states, Words histories, Actions actions, int limit,
                       Out<Words> next_states, Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated,
                       Out<Flags> truncated, ffi::RemainingRets numbers) {
    return run(pool, steps_of(states, histories, actions, limit, next_states, next_histories, seen, terminated,
                              truncated, numbers));
}

inline ffi::Error Advance(ffi::ThreadPool pool, Words states, Words histories, Actions actions, Words keys, int limit,
                          Out<Words> next_states, Out<Words> next_histories, Out<Numbers> seen, Out<Flags> terminated,
                          Out<Flags> truncated, Out<Numbers> first_seen, ffi::RemainingRets numbers) {
    Steps steps =
        steps_of(states, histories, actions, limit, next_states, next_histories, seen, terminated, truncated, numbers);
    steps.keys = keys.typed_data(), steps.first_seen = first_seen->typed_data();
    return run(pool, steps);
}

}  // namespace cpu

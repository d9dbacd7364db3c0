// One step by the rules, and its reward in fifteen parts.
#pragma once
#include "enemy_turn.h"
#include "player_turn.h"
#include "stages.h"

constexpr int PARTS = 15;

struct Report {
    float parts[PARTS];
    float reward;
    bool terminated, truncated, won, next_stage, remembers;
    int stage;
};

struct Before {
    int score, hp, credits, energy, distance;
};

HD bool siphon_enemy_adjacent(const Game& game) {
    for (int slot = 0; slot < SLOTS && game.enemies[slot]; slot++) {
        u32 enemy = game.enemies[slot];
        if (enemy & ENEMY_FROM_SIPHON && manhattan(square_in(enemy), game.at) == 1) return true;
    }
    return false;
}

HD float paid(double pay, int number) { return static_cast<float>(pay) * static_cast<float>(number); }

HD void reward_parts(const Game& game, const Before& before, const Deed& deed, bool acted, bool won, bool died,
                     float* parts) {
    int healed = game.hp - before.hp, wealth = game.credits + game.energy, nearer = 0;
    if (!died) nearer = before.distance - (deed.reached_exit ? 0 : distance(game.at, game.exit, game.blocks));
    parts[0] = static_cast<float>(STEP_PENALTY);
    parts[1] = deed.reached_exit ? static_cast<float>(1 << (smaller(game.stage, STAGES - 1) - 1)) : 0.0f;
    parts[2] = paid(SCORE_PAY, game.score - before.score);
    parts[3] = paid(KILL_PAY, deed.kills);
    parts[4] = paid(PICKUP_PAY, deed.picked_up);
    parts[5] = paid(DISTANCE_PAY, larger(nearer, 0));
    parts[6] = static_cast<float>(smaller(healed, 0));
    parts[7] = static_cast<float>(larger(healed, 0));
    parts[8] = won ? static_cast<float>(VICTORY_PAY) + paid(VICTORY_SCORE_PAY, game.score) : 0.0f;
    parts[9] = died ? paid(DEATH_SHARE, (1 << (game.stage - 1)) - 1) : 0.0f;
    parts[10] = died && acted && siphon_enemy_adjacent(game) ? static_cast<float>(SIPHON_DEATH_PAY) : 0.0f;
    parts[11] = paid(RESOURCE_PAY, wealth - before.credits - before.energy);
    parts[12] = deed.reached_exit ? paid(HOLDING_PAY, wealth) : 0.0f;
    parts[13] = deed.wasted ? static_cast<float>(WASTE_PAY) : 0.0f;
    parts[14] = paid(QUALITY_SHARE * RESOURCE_PAY, deed.missed.credits + deed.missed.energy);
}

// Carry out an action and let the enemies answer; the board of a next stage is not laid out yet. The numbers of the
// game are put beside its lists.
HD Report play(u32* words, const u32* history, int action, int limit) {
    Game game = read_game(words);
    Before before = {game.score, game.hp, game.credits, game.energy, distance(game.at, game.exit, game.blocks)};
    Deed deed = carry_out(game, action, words, history);
    bool acted = enemy_turn(game, deed.ends_turn);
    game.hp = smaller(game.hp + deed.reached_exit, MAX_HP);
    bool died = deed.legal && game.hp == 0;
    Report report;
    report.won = deed.reached_exit && game.stage == STAGES;
    for (int part = 0; part < PARTS; part++) report.parts[part] = 0.0f;
    if (deed.legal) reward_parts(game, before, deed, acted, report.won, died, report.parts);
    report.reward = 0.0f;
    for (int part = 0; part < PARTS; part++) report.reward += report.parts[part];
    report.next_stage = deed.reached_exit && !report.won;
    report.remembers = acted;
    if (report.next_stage) game.interval = FIRST_INTERVAL - game.stage, game.stage++;
    game.steps++;
    game.source.event++;
    report.stage = game.stage;
    report.terminated = !deed.legal || died || report.won;
    report.truncated = game.steps >= limit && !report.terminated;
    write_game(game, words);
    return report;
}

// Lay out the stage that a game is in. Compiled once however often it is called: it is most of the code.
HD_APART void lay_out_words(u32* words) {
    Game game = read_game(words);
    lay_out(game);
    write_game(game, words);
}

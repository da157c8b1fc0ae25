// Patches shown to those neurons only that may open on them, some neurons and some patches at a
// time: both stay in the first cache, and nothing is gathered.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));
const int TOGETHER = 6, NEURONS = 32;

// Rows of d numbers, filled up with zeros to whole vectors: no rest to add up one by one.
struct Rows {
    int64_t length;
    std::vector<float> memory;
    float *first;
    Rows(int64_t count, int64_t d) : length((d + 7) / 8 * 8), memory(count * length + 8) {
        const uintptr_t place = reinterpret_cast<uintptr_t>(memory.data());
        first = reinterpret_cast<float *>((place + 31) / 32 * 32);
    }
    void set(int64_t number, const float *from, int64_t d) {
        std::memcpy(first + number * length, from, d * sizeof(float));
    }
};

template <int COUNT>
void products(const float *row, const float *patch, int64_t length, float *found) {
    Eight sum[COUNT] = {};
    for (int64_t i = 0; i < length; i += 8) {
        const Eight w = *reinterpret_cast<const Eight *>(row + i);
        for (int q = 0; q < COUNT; q++)
            sum[q] += w * *reinterpret_cast<const Eight *>(patch + q * length + i);
    }
    for (int q = 0; q < COUNT; q++) {
        Four low, high;
        std::memcpy(&low, &sum[q], sizeof low);
        std::memcpy(&high, reinterpret_cast<const char *>(&sum[q]) + sizeof low, sizeof high);
        low += high;
        found[q] = (low[0] + low[2]) + (low[1] + low[3]);
    }
}

// Where the patches (set, slot, sample) of a run are.
std::vector<const float *> places(const float *patches, const int64_t *shape,
                                  const int64_t *strides) {
    std::vector<const float *> found;
    for (int64_t set = 0; set < shape[0]; set++)
        for (int64_t slot = 0; slot < shape[1]; slot++)
            for (int64_t sample = 0; sample < shape[2]; sample++)
                found.push_back(patches + set * strides[1] + slot * strides[2] +
                                sample * strides[3]);
    return found;
}

}  // namespace

// Of each run: weights (output * m, d); level, the biases, and spare, how far above its threshold
// noise may lift a neuron, (output * m); feature: of each set, -1 for none; patches (set, slot,
// sample, d) by their strides. Adds to scores (output, set * sample), and sets the bits of open
// (output * m, set, patches / 64 rounded up). "Not <= 0": what is not a number must show.
extern "C" void rarefy_show(int64_t runs, int64_t outputs, int64_t m, int64_t d,
                            const int64_t *shape, const int64_t *strides, const int64_t *feature,
                            float strongest, const float *weights, const float *level,
                            const float *spare, const float *patches, float *scores,
                            uint64_t *open) {
    const int64_t sets = shape[0], samples = shape[2], count = shape[1] * samples;
    const int64_t words = (count + 63) / 64;
    const int64_t neurons = outputs * m;
    Rows packed(sets * count, d), own(NEURONS, d);
    for (int64_t run = 0; run < runs; run++) {
        int64_t next = 0;
        for (const float *from : places(patches + run * strides[0], shape, strides))
            packed.set(next++, from, d);
        for (int64_t first = 0; first < neurons; first += NEURONS) {
            const int some = int(neurons - first < NEURONS ? neurons - first : NEURONS);
            const int64_t number = run * neurons + first;
            for (int i = 0; i < some; i++) own.set(i, weights + (number + i) * d, d);
            for (int64_t set = 0; set < sets; set++) {
                int awake[NEURONS], found = 0;
                for (int i = 0; i < some; i++) {
                    float reach = feature[set] < 0 ? 0.0f : own.first[i * own.length + feature[set]];
                    reach = reach < 0 ? 0.0f : reach;
                    awake[found] = i;
                    found += !(spare[number + i] + strongest * reach <= 0);
                }
                for (int64_t q = 0; q < count; q += TOGETHER) {
                    const int shown = int(count - q < TOGETHER ? count - q : TOGETHER);
                    const float *patch = packed.first + (set * count + q) * packed.length;
                    for (int each = 0; each < found; each++) {
                        const int i = awake[each];
                        const float *row = own.first + i * own.length;
                        float answer[TOGETHER];
                        if (shown == TOGETHER)
                            products<TOGETHER>(row, patch, own.length, answer);
                        else
                            for (int p = 0; p < shown; p++)
                                products<1>(row, patch + p * own.length, own.length, answer + p);
                        unsigned opened = 0;
                        for (int p = 0; p < shown; p++) {
                            answer[p] += level[number + i];
                            opened |= unsigned(!(answer[p] <= 0)) << p;
                        }
                        float *score = scores + (run * outputs + (first + i) / m) * sets * samples;
                        uint64_t *bits = open + ((number + i) * sets + set) * words;
                        for (; opened; opened &= opened - 1) {
                            const int64_t p = __builtin_ctz(opened);
                            score[set * samples + (q + p) % samples] += answer[p];
                            bits[(q + p) / 64] |= uint64_t(1) << (q + p) % 64;
                        }
                    }
                }
            }
        }
    }
}

// Adds to gradient, (output * m, d) of each run, residual (output, set * sample) times patch over
// the patches that a neuron is open on.
extern "C" void rarefy_combine(int64_t runs, int64_t outputs, int64_t m, int64_t d,
                               const int64_t *shape, const int64_t *strides, const float *residual,
                               const float *patches, const uint64_t *open, float *gradient) {
    const int64_t sets = shape[0], samples = shape[2], count = shape[1] * samples;
    const int64_t words = (count + 63) / 64;
    for (int64_t run = 0; run < runs; run++) {
        const std::vector<const float *> patch = places(patches + run * strides[0], shape, strides);
        for (int64_t neuron = 0; neuron < outputs * m; neuron++) {
            const int64_t number = run * outputs * m + neuron;
            float *__restrict sum = gradient + number * d;
            const float *weight = residual + (run * outputs + neuron / m) * sets * samples;
            for (int64_t word = 0; word < sets * words; word++)
                for (uint64_t bits = open[number * sets * words + word]; bits; bits &= bits - 1) {
                    const int64_t q = word % words * 64 + __builtin_ctzll(bits);
                    const float *x = patch[word / words * count + q];
                    const float factor = weight[word / words * samples + q % samples];
                    for (int64_t i = 0; i < d; i++) sum[i] += factor * x[i];
                }
        }
    }
}

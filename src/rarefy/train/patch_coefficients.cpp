// Loss of the patch network and the coefficient of each patch in its gradient: what
// patch_coefficients.py does by torch, in two passes over the responses of one run at a time, which
// stay in a core's cache; and whole steps by responses. Loops of a form that compilers turn into vector instructions; comparisons
// so that what is not a number stays so.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../core/products.h"

namespace {

// e^x for x <= 0, to two units in the last place; below -87 it is 0.
inline float exponential(float x) {
    const float clipped = x < -87.0f ? -87.0f : x;
    // the next whole number of halvings stands in the last bits of the sum
    const float shifted = clipped * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f;
    const float rest = (clipped - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float series = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    series = series * rest + 8.3334519073e-3f;
    series = series * rest + 4.1665795894e-2f;
    series = series * rest + 1.6666665459e-1f;
    series = series * rest + 5.0000001201e-1f;
    series = series * (rest * rest) + rest + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = int32_t(uint32_t(bits + 127) << 23);
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : series * power;
}

struct Sizes {
    int64_t classes, filters, samples, patches, row;
};

// total[k][p] = scale_p times the sum over a class's filters of ReLU(response)
void pool(const Sizes &s, const float *seen, const float *scales, float *__restrict total) {
    for (int64_t k = 0; k < s.classes; k++, total += s.patches) {
        for (int64_t p = 0; p < s.patches; p++) total[p] = 0.0f;
        for (int64_t r = 0; r < s.filters; r++, seen += s.row)
            for (int64_t p = 0; p < s.patches; p++) total[p] += seen[p] < 0.0f ? 0.0f : seen[p];
        for (int64_t p = 0; p < s.patches; p++) total[p] *= scales[p];
    }
}

// score[k][i] becomes softmax_k - [y_i = k]; the mean loss.
float residuals(const Sizes &s, const int32_t *label, float *score) {
    const int64_t n = s.samples;
    std::vector<float> most(score, score + n), sum(n, 0.0f);
    float *const top = most.data(), *const all = sum.data();
    for (int64_t k = 1; k < s.classes; k++)
        for (int64_t i = 0; i < n; i++)
            top[i] = score[k * n + i] > top[i] ? score[k * n + i] : top[i];
    double loss = 0.0;
    for (int64_t i = 0; i < n; i++) loss += double(top[i]) - double(score[label[i] * n + i]);
    for (int64_t k = 0; k < s.classes; k++)
        for (int64_t i = 0; i < n; i++) {
            score[k * n + i] = exponential(score[k * n + i] - top[i]);
            all[i] += score[k * n + i];
        }
    for (int64_t i = 0; i < n; i++) loss += std::log(double(all[i]));
    for (int64_t k = 0; k < s.classes; k++)
        for (int64_t i = 0; i < n; i++) score[k * n + i] /= all[i];
    for (int64_t i = 0; i < n; i++) score[label[i] * n + i] -= 1.0f;
    return float(loss / double(n));
}

template <bool AT_ZERO>
void open_parts(const float *seen, const float *weight, int64_t count, float *__restrict parts) {
    for (int64_t p = 0; p < count; p++)
        parts[p] = weight[p] * ((AT_ZERO ? seen[p] >= 0.0f : seen[p] > 0.0f) ? 1.0f : 0.0f);
}

// What the samples of a run say of its responses.
struct Readout {
    const float *scales, *one_hot;
    float factor, output_scale;
    bool open_at_zero;
};

struct Summed {
    int64_t patches, row;
    float *first;
};

// Responses of a run become parts, the coefficients; the mean loss.
class Descent {
  public:
    explicit Descent(const Sizes &s)
        : s(s), pooled(s.classes * s.patches), scores(s.classes * s.samples), label(s.samples) {}

    float operator()(const Readout &how, const float *seen, float *parts, int64_t parts_row,
                     Summed sums) {
        for (int64_t i = 0; i < s.samples; i++) {
            const float *here = how.one_hot + i * s.classes;
            label[i] = int32_t(std::find(here, here + s.classes - 1, 1.0f) - here);
        }
        pool(s, seen, how.scales, pooled.data());
        for (int64_t k = 0; k < s.classes; k++) {
            const float *total = &pooled[k * s.patches];
            for (int64_t i = 0; i < s.samples; i++)
                scores[k * s.samples + i] =
                    (total[i] + total[s.samples + label[i]]) * how.output_scale;
        }
        const float loss = residuals(s, label.data(), scores.data());
        for (int64_t k = 0; k < s.classes; k++) {
            weigh(how, k);
            const float *weight = &pooled[k * s.patches];
            for (int64_t r = 0; r < s.filters; r++, seen += s.row, parts += parts_row) {
                (how.open_at_zero ? open_parts<true> : open_parts<false>)(seen, weight, s.patches,
                                                                          parts);
                if (!sums.first) continue;
                for (int64_t p = 0; p < sums.patches; p++) sums.first[p] -= parts[p];
                sums.first += sums.row;
            }
        }
        return loss;
    }

  private:
    const Sizes s;
    std::vector<float> pooled, scores;
    std::vector<int32_t> label;

    // In place of what was pooled: of each patch the coefficient, where a filter is open.
    void weigh(const Readout &how, int64_t k) {
        float *weight = &pooled[k * s.patches];
        const float share = how.output_scale / float(s.samples);
        for (int64_t p = s.samples; p < s.patches; p++) weight[p] = 0.0f;
        for (int64_t i = 0; i < s.samples; i++) {
            weight[i] = scores[k * s.samples + i] * share;
            weight[s.samples + label[i]] += weight[i];
        }
        for (int64_t p = 0; p < s.patches; p++) weight[p] *= how.scales[p] * how.factor;
    }
};

#if defined(__AVX512F__)
typedef Sixteen Lanes;
const int ROWS = 8, VECTORS = 2;
#elif defined(__FMA__)
typedef Eight Lanes;
const int ROWS = 4, VECTORS = 3;
#else
typedef Four Lanes;
const int ROWS = 4, VECTORS = 2;
#endif
const int WIDTH = sizeof(Lanes) / sizeof(float);
const int PANEL = WIDTH * VECTORS, DEPTH = 128;

// whole -= parts times gram: (rows, inner), (inner, inner); a piece of gram at a time, which stays in
// the first cache.
void subtract_product(int64_t rows, int64_t inner, const float *parts, int64_t parts_row,
                      const float *gram, int64_t gram_row, float *whole, int64_t row) {
    float piece[DEPTH * PANEL], edge[ROWS][PANEL] = {};
    for (int64_t at = 0; at < inner; at += PANEL)
        for (int64_t begin = 0; begin < inner; begin += DEPTH) {
            const int64_t some = std::min<int64_t>(PANEL, inner - at);
            const int64_t depth = std::min<int64_t>(DEPTH, inner - begin);
            for (int64_t k = 0; k < depth; k++) {
                const float *from = gram + (begin + k) * gram_row + at;
                for (int64_t j = 0; j < PANEL; j++) piece[k * PANEL + j] = j < some ? -from[j] : 0.0f;
            }
            for (int64_t r = 0; r < rows; r += ROWS) {
                const bool whole_rows = some == PANEL && r + ROWS <= rows;
                const float *from[ROWS];
                float *to[ROWS], *there[ROWS];
                for (int64_t q = 0; q < ROWS; q++) {
                    const int64_t mine = std::min(r + q, rows - 1);
                    from[q] = parts + mine * parts_row + begin;
                    to[q] = whole + mine * row + at;
                    there[q] = whole_rows ? to[q] : std::copy(to[q], to[q] + some, edge[q]) - some;
                }
                if (some > WIDTH)
                    inner_products<Lanes, ROWS, VECTORS, true>(from, depth, piece, PANEL, there, 0);
                else
                    inner_products<Lanes, ROWS, 1, true>(from, depth, piece, PANEL, there, 0);
                for (int64_t q = 0; !whole_rows && q < std::min<int64_t>(ROWS, rows - r); q++)
                    std::copy(edge[q], edge[q] + some, to[q]);
            }
        }
}

}  // namespace

// seen, parts: (run, classes, filters, patches), a row every `row` numbers; patches beyond samples +
// classes are empty. scales: (run, patches); one_hot: (run or 1, samples, classes), its runs
// `group` numbers apart; factors, loss: (run,). sums, if not null: as seen but with a row every
// sums_row numbers; the first sums_patches of parts are subtracted from it.
extern "C" void rarefy_patch_coefficients(
    int64_t runs, int64_t classes, int64_t filters, int64_t samples, int64_t patches, int64_t row,
    int64_t group, int64_t sums_patches, int64_t sums_row, int32_t open_at_zero, float output_scale,
    const float *scales, const float *one_hot, const float *factors, const float *seen,
    float *parts, float *loss, float *sums) {
    Descent descent(Sizes{classes, filters, samples, patches, row});
    for (int64_t run = 0; run < runs; run++) {
        const Readout how{scales + run * patches, one_hot + run * group, factors[run], output_scale,
                          open_at_zero != 0};
        const int64_t rows = run * classes * filters;
        const Summed summed{sums_patches, sums_row, sums ? sums + rows * sums_row : nullptr};
        loss[run] = descent(how, seen + rows * row, parts + rows * row, row, summed);
    }
}

// The same, and seen -= parts times gram, (run or 1, patches, patches), its runs gram_group numbers
// apart; patches beyond inner are orthonormal, and to all others.
extern "C" void rarefy_gram_step(int64_t runs, int64_t classes, int64_t filters, int64_t samples,
                                 int64_t patches, int64_t row, int64_t group, int64_t sums_row,
                                 int64_t inner, int64_t gram_group, float output_scale,
                                 const float *scales, const float *one_hot, const float *factors,
                                 const float *gram, float *seen, float *sums, float *loss) {
    Descent descent(Sizes{classes, filters, samples, patches, row});
    const int64_t rows = classes * filters;
    std::vector<float> parts(rows * patches);
    for (int64_t run = 0; run < runs; run++, seen += rows * row, sums += rows * sums_row) {
        const Readout how{scales + run * patches, one_hot + run * group, factors[run], output_scale,
                          true};
        loss[run] = descent(how, seen, parts.data(), patches, Summed{patches, sums_row, sums});
        subtract_product(rows, inner, parts.data(), patches, gram + run * gram_group, patches, seen,
                         row);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t p = inner; p < patches; p++) seen[r * row + p] -= parts[r * patches + p];
    }
}

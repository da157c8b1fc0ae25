// Rows of weights with all but those of largest magnitude zero: masks.project_largest for a C++
// compiler, the same choice to the bit. Loops of a form that compilers turn into vector
// instructions: to count a short row forty times takes less than to order it.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

int64_t count_from(const int32_t *size, int64_t width, int64_t from) {
    const int32_t before = int32_t(from - 1);
    int32_t found = 0;
    for (int64_t i = 0; i < width; i++) found += size[i] > before;
    return found;
}

// Between the smallest that is kept and the largest that is not.
int32_t middle(const int32_t *size, int64_t width, int32_t before) {
    int32_t least = 0x7FFFFFFF, below = 0;
    for (int64_t i = 0; i < width; i++) {
        const int32_t kept = -int32_t(size[i] > before);
        least = std::min(least, size[i] | (0x7FFFFFFF & ~kept));
        below = std::max(below, size[i] & ~kept);
    }
    return least - (least - below) / 2;
}

}  // namespace

// Magnitudes are compared as the whole numbers their bits are. level: from which on exactly keep of
// a row were kept the last time; where it no longer fits, it is searched from there.
extern "C" void rarefy_project(int64_t rows, int64_t width, const int32_t *weights,
                               const int64_t *keep, int32_t *level, int32_t *out) {
    std::vector<int32_t> magnitudes(width);
    int32_t *const size = magnitudes.data();
    for (int64_t row = 0; row < rows; row++, weights += width, out += width) {
        const int64_t wanted = keep[row];
        int64_t at = level[row];
        for (int64_t i = 0; i < width; i++) size[i] = weights[i] & 0x7FFFFFFF;
        int64_t above = count_from(size, width, at);
        const bool fits = above == wanted;
        // from low on there are too many, from high on too few
        int64_t low = -1, high = 0x80000000;
        bool bounded_below = false, bounded_above = false;
        for (int64_t step = 1 << 14; above != wanted; step *= 4) {
            (above > wanted ? low : high) = at;
            (above > wanted ? bounded_below : bounded_above) = true;
            if (high - low == 1) break;
            if (bounded_below && bounded_above)
                at = low + (high - low) / 2;
            else
                at = bounded_below ? std::min(low + step, high - 1) : std::max(high - step, low + 1);
            above = count_from(size, width, at);
        }
        if (above == wanted) {
            const int32_t before = int32_t(at - 1);
            for (int64_t i = 0; i < width; i++) out[i] = weights[i] & -int32_t(size[i] > before);
            if (!fits) level[row] = wanted < width ? middle(size, width, before) : 0;
        } else {  // several are equal to low: the first of them stay
            int64_t equals = wanted - count_from(size, width, high);
            for (int64_t i = 0; i < width; i++) {
                const bool kept = size[i] >= high || (size[i] == low && equals-- > 0);
                out[i] = kept ? weights[i] : 0;
            }
            level[row] = int32_t(low);
        }
    }
}

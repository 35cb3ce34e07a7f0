// From weighted sums to the answer of one row and its radius: quotient, logarithm, probabilities.
// Lemmas 16 to 19 and Theorem 20 of docs/double_double.md. Included once for every target.
#include "oracle/truth/scalar_pair.hpp"
#include "oracle/truth/value_tile-inl.hpp"

#if defined(RINGPROOF_ROW_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_ROW_FINISH_INL
#undef RINGPROOF_ROW_FINISH_INL
#else
#define RINGPROOF_ROW_FINISH_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

HWY_INLINE ScalarPair first_lane(Pair x) { return {hn::GetLane(x.hi), hn::GetLane(x.lo)}; }
HWY_INLINE Pair broadcast(ScalarPair x) { return {broadcast(x.hi), broadcast(x.lo)}; }

/// The denominator of a row and the bound of its error.
struct Denominator {
  ScalarPair value;
  double error;
};

/// Lemma 16: error of a weighted sum, from its sums of magnitudes and of weight errors.
template <bool kTight>
HWY_INLINE Vec sum_error(Vec magnitude, Vec weight_errors, double tiles) {
  constexpr double kTile = kTight ? bounds::kTileTight : bounds::kTileFast;
  const Vec rounding =
      hn::Add(hn::Mul(magnitude, broadcast(4 * bounds::kUp * kTile + bounds::kAccumulate * tiles)),
              broadcast(tiles * bounds::kSmallestGrid * kTile));
  return hn::Mul(hn::Add(weight_errors, rounding), broadcast(bounds::kUp));
}

/// The sum over the column of ones, and the sink.
template <bool kTight>
HWY_INLINE Denominator denominator(const RowBatch& batch, int r, double tiles) {
  const std::int64_t column = batch.head->value_dim;
  const auto sum = [&](ColumnSum which) { return column_sum(batch, which, r)[column]; };
  const Vec error =
      sum_error<kTight>(broadcast(sum(kSumMagnitude)), broadcast(sum(kSumError)), tiles);
  Denominator result{{sum(kSumHigh), sum(kSumLow)}, hn::GetLane(error)};
  const BatchRow& row = batch.row[r];
  if (!row.has_sink) return result;
  const Exponent x = exponent_of({broadcast(row.sink), hn::Zero(Tag())}, hn::Zero(Tag()),
                                 broadcast(row.truth->max_score));
  if (!(hn::GetLane(x.value.hi) >= bounds::kExpLowest)) {
    result.error += bounds::kDroppedWeight;
    return result;
  }
  const Pair weight = exp_dd(*batch.table, x.value);
  const Pair total = add(broadcast(result.value), weight);
  result.value = first_lane(total);
  const double added = hn::GetLane(hn::Mul(weight.hi, weight_error(x.value.hi, hn::Zero(Tag())))) +
                       result.value.hi * (2 * bounds::kAddition) + bounds::kTileUnderflow;
  result.error = (result.error + added) * bounds::kUp;
  return result;
}

/// Lemma 17 and Theorem 20: out = sum / denominator with its radius, for one vector of columns.
template <bool kTight>
HWY_INLINE void quotient(const RowBatch& batch, int r, const Denominator& below, double tiles,
                         std::int64_t column, Certified* out) {
  const auto sum = [&](ColumnSum which) { return load(column_sum(batch, which, r) + column); };
  const Vec magnitude = sum(kSumMagnitude);
  const Pair value = divide({sum(kSumHigh), sum(kSumLow)}, broadcast(below.value));
  const Vec size = hn::Abs(value.hi);
  const Vec numerator = hn::Add(sum_error<kTight>(magnitude, sum(kSumError), tiles),
                                hn::Mul(size, broadcast(below.error)));
  const Vec propagated =
      hn::Mul(hn::Div(numerator, broadcast(below.value.hi)), broadcast(1 + 0x1p-18));
  const Vec radius = hn::Add(propagated, hn::Add(hn::Mul(size, broadcast(bounds::kDivision)),
                                                 broadcast(bounds::kTileUnderflow)));
  // A column of zeros has an exact answer.
  const Vec zero = hn::Zero(Tag());
  alignas(64) double hi[kVirtualLanes], lo[kVirtualLanes], bound[kVirtualLanes];
  store(value.hi, hi);
  store(value.lo, lo);
  store(hn::IfThenZeroElse(hn::Eq(magnitude, zero), radius), bound);
  for (int n = 0; n < kLanes && column + n < batch.head->value_dim; ++n) {
    const bool finite = std::isfinite(hi[n]) && std::isfinite(bound[n]);
    out[column + n] = finite ? Certified{hi[n], lo[n], bound[n]}
                             : Certified{0, 0, std::numeric_limits<double>::infinity()};
  }
}

/// Lemma 19: lse = max + log(denominator); one Newton step in double-double from any close guess.
HWY_INLINE Certified log_sum_exp(const RowBatch& batch, double maximum, const Denominator& below) {
  const double guess = std::log(below.value.hi);
  const Pair inverse = exp_dd(*batch.table, {broadcast(-guess), hn::Zero(Tag())});
  const Pair product = multiply(inverse, broadcast(below.value));
  const double rest = (hn::GetLane(product.hi) - 1) + hn::GetLane(product.lo);
  const Certified unknown{0, 0, std::numeric_limits<double>::infinity()};
  if (!(std::abs(rest) <= 0x1p-46)) return unknown;
  const double correction = rest - rest * rest / 2;
  const ScalarPair sum = first_lane(two_sum(broadcast(maximum), broadcast(guess)));
  const double low = sum.lo + correction;
  const ScalarPair lse = first_lane(two_sum(broadcast(sum.hi), broadcast(low)));
  const double relative = below.error / below.value.hi * (1 + 0x1p-18);
  const double radius =
      (relative + bounds::kLogarithm + std::abs(low) * bounds::kUnit) * bounds::kUp;
  return std::isfinite(radius) ? Certified{lse.hi, lse.lo, radius} : unknown;
}

/// Completes log_p = s - m - log(denominator) and p of every key. The weights of each block stand
/// at the reference that held then.
HWY_INLINE void probabilities(const RowBatch& batch, int r, double log_denominator, double below) {
  RowTruth& truth = *batch.row[r].truth;
  const std::int64_t size = truth.keys.size();
  constexpr std::int64_t kBlockKeys = kBlockTiles * kTileKeys;
  constexpr double kSmallestLogarithm = -746;  // exp of less is 0
  for (std::int64_t block = 0; block < batch.blocks(); ++block) {
    const double lag = batch.reference.data()[block * batch.rows + r] - batch.row[r].reference;
    const double factor = lag > bounds::kExpLowest ? std::exp(lag) / below : 0;
    const std::int64_t first = std::max<std::int64_t>(0, block * kBlockKeys + batch.row[r].offset);
    const std::int64_t last = std::min(size, (block + 1) * kBlockKeys + batch.row[r].offset);
    double* log_p = truth.log_p.data();
    double* p = truth.p.data();
    for (std::int64_t key = first; key < last; key += kLanes) {
      const Vec shifted = hn::Add(load_clipped(log_p, key, last), broadcast(lag));
      const Vec logarithm = hn::Sub(shifted, broadcast(log_denominator));
      const Vec probability = hn::Mul(load_clipped(p, key, last), broadcast(factor));
      store_clipped(logarithm, log_p, key, last);
      store_clipped(probability, p, key, last);
      // Weights below exp(-690) were dropped from the sums, not from the promise about p.
      const Mask tiny = hn::And(hn::Lt(probability, broadcast(0x1p-990)),
                                hn::Gt(logarithm, broadcast(kSmallestLogarithm)));
      if (hn::AllFalse(Tag(), tiny)) continue;
      for (std::int64_t n = key; n < std::min(last, key + kLanes); ++n) {
        if (p[n] < 0x1p-990 && log_p[n] > kSmallestLogarithm) p[n] = std::exp(log_p[n]);
      }
    }
  }
}

/// Everything of row r that follows from its sums.
template <bool kTight>
HWY_NOINLINE void finish_row(RowBatch& batch, int r) {
  BatchRow& row = batch.row[r];
  RowTruth& truth = *row.truth;
  const auto tiles = static_cast<double>(row.tiles);
  truth.max_score = row.reference;
  truth.score_radius = row.score_excess * bounds::kUpFew;
  const Denominator below = denominator<kTight>(batch, r, tiles);
  row.denominator_hi = below.value.hi;
  row.denominator_lo = below.value.lo;
  row.denominator_error = below.error;
  truth.lse = log_sum_exp(batch, truth.max_score, below);
  const bool sound = !row.failed && below.value.hi >= 0.5 &&
                     below.error <= 0x1p-42 * below.value.hi && std::isfinite(truth.lse.radius);
  if (!sound) {
    const Certified unknown{0, 0, std::numeric_limits<double>::infinity()};
    truth.lse = unknown;
    std::fill(truth.out.begin(), truth.out.end(), unknown);
    return;
  }
  for (std::int64_t column = 0; column < batch.head->value_dim; column += kLanes) {
    quotient<kTight>(batch, r, below, tiles, column, truth.out.data());
  }
  const double log_denominator = (truth.lse.hi - truth.max_score) + truth.lse.lo;
  probabilities(batch, r, log_denominator, below.value.hi);
  truth.log_p_sink = row.has_sink ? (row.sink - truth.max_score) - log_denominator : 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target

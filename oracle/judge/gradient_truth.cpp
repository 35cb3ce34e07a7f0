#include "oracle/judge/gradient_truth.hpp"

#include <limits>
#include <memory>
#include <utility>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/gradient_walk.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Certified kUnknown{0, 0, kInfinity};

/// What stays the same for all rows.
struct Settings {
  const Problem& problem;
  const Upstream& upstream;
  unsigned bits;
  std::optional<DType> round_to;
  unsigned most_bits;

  DType type() const { return round_to.value_or(DType::f64); }
  bool settled(const std::vector<Certified>& numbers) const {
    if (!round_to) return true;
    for (const Certified& x : numbers) {
      if (!decided(*round_to, x)) return false;
    }
    return true;
  }
  bool escalates() const { return round_to.has_value() && bits == 0; }
};

/// Writes the rows and keys of one KV head as they are finished.
class HeadWriter final : public GradientGroup {
 public:
  HeadWriter(const Settings& settings, std::int64_t b, std::int64_t kv_head,
             GradientTensors& tensors)
      : settings_(settings),
        problem_(settings.problem),
        b_(b),
        kv_head_(kv_head),
        sums_(problem_),
        tensors_(tensors),
        failed_(static_cast<std::size_t>(problem_.keys)) {
    row_sums.sinks_wanted = static_cast<bool>(problem_.sinks);
    if (problem_.bias) row_sums.bias_shape = bias_shape(problem_);
  }

  GradientSums* sums() override { return &sums_; }

  void add_row(const HeadView&, RowTruth&, RowGradients&) override;
  void merge(GradientGroup& other) override {
    auto& later = static_cast<HeadWriter&>(other);
    sums_.merge(later.sums_);
    row_sums.merge(later.row_sums);
    for (std::size_t j = 0; j < failed_.size(); ++j) failed_[j] |= later.failed_[j];
  }

  void finish(const HeadView&) override;

  RowSums row_sums;

 private:
  void mark_failed(const RowTruth& row) {
    for (std::size_t n = 0; n < row.score.size(); ++n) {
      if (row.score[n] > -kInfinity) failed_[static_cast<std::size_t>(row.keys.first) + n] = 1;
    }
  }

  /// Returns whether all of it is decided (or nothing is to be).
  bool write_key(std::int64_t j, const KeyGradients& key) {
    const std::int64_t n = (b_ * problem_.kv_heads + kv_head_) * problem_.keys + j;
    const auto write = [&](IntervalTensor& tensor, const std::vector<Certified>& numbers) {
      const auto columns = static_cast<std::int64_t>(numbers.size());
      for (std::int64_t c = 0; c < columns; ++c) {
        if (key.not_applicable.empty()) {
          tensor.set(n * columns + c, numbers[static_cast<std::size_t>(c)], settings_.type());
        } else {
          tensor.set(n * columns + c, kNaN, kNaN);
        }
      }
    };
    write(tensors_.dk, key.dk);
    write(tensors_.dv, key.dv);
    return !key.not_applicable.empty() || (settings_.settled(key.dk) && settings_.settled(key.dv));
  }

  std::vector<std::int64_t> write_keys(const std::vector<std::int64_t>& keys, unsigned digits) {
    const std::vector<KeyGradients> exact =
        interval_key_gradients(problem_, settings_.upstream, b_, kv_head_, keys, digits);
    std::vector<std::int64_t> undecided;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      if (!write_key(keys[n], exact[n])) undecided.push_back(keys[n]);
    }
    return undecided;
  }

  std::vector<std::uint8_t> no_key() const {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(problem_.keys), 0);
  }

  const Settings& settings_;
  const Problem& problem_;
  std::int64_t b_, kv_head_;
  GradientSums sums_;
  GradientTensors& tensors_;
  std::vector<std::uint8_t> failed_;  // [Nk] a row that sees the key could not be certified
};

void HeadWriter::add_row(const HeadView&, RowTruth& row, RowGradients& gradients) {
  const std::int64_t first =
      ((b_ * problem_.heads + row.h) * problem_.queries + row.i) * problem_.head_dim;
  if (!gradients.not_applicable.empty()) {
    row_sums.refuse(row, gradients.not_applicable);
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) tensors_.dq.set(first + d, kNaN, kNaN);
    return;
  }
  if (gradients.failed) mark_failed(row);
  row_sums.add(row, gradients, nullptr, 0);
  for (unsigned digits = kFirstBits;
       !gradients.failed && settings_.escalates() && !settings_.settled(gradients.dq) &&
       digits <= settings_.most_bits;
       digits *= 2) {
    interval_row_gradients(problem_, settings_.upstream, b_, row.h, row.i, digits, row, gradients,
                           nullptr);
  }
  for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
    tensors_.dq.set(first + d,
                    gradients.failed ? kUnknown : gradients.dq[static_cast<std::size_t>(d)],
                    settings_.type());
  }
}

void HeadWriter::finish(const HeadView&) {
  std::vector<std::int64_t> undecided;
  KeyGradients key;
  key.dk.resize(static_cast<std::size_t>(problem_.head_dim));
  key.dv.resize(static_cast<std::size_t>(problem_.value_dim));
  for (std::int64_t j = 0; j < problem_.keys; ++j) {
    key.not_applicable = sums_.not_applicable(j) ? "not applicable" : "";
    const bool failed = failed_[static_cast<std::size_t>(j)] != 0;
    for (std::size_t d = 0; d < key.dk.size(); ++d) {
      key.dk[d] = failed ? kUnknown : sums_.dk(j, static_cast<std::int64_t>(d));
    }
    for (std::size_t c = 0; c < key.dv.size(); ++c) {
      key.dv[c] = failed ? kUnknown : sums_.dv(j, static_cast<std::int64_t>(c));
    }
    if (!write_key(j, key) && !failed) undecided.push_back(j);
  }
  for (unsigned digits = kFirstBits;
       settings_.escalates() && !undecided.empty() && digits <= settings_.most_bits; digits *= 2) {
    undecided = write_keys(undecided, digits);
  }
  sums_ = GradientSums(problem_, no_key());
}

void write_sums(const SummedRows& sums, std::int64_t rows, std::int64_t columns, DType type,
                bool with_rounded, IntervalTensor& tensor) {
  tensor.resize(rows * columns, with_rounded);
  for (std::int64_t n = 0; n < rows; ++n) {
    const SummedRow* sum = sums.find(n);
    for (std::int64_t c = 0; c < columns; ++c) {
      if (sum != nullptr && !sum->not_applicable.empty()) {
        tensor.set(n * columns + c, kNaN, kNaN);
      } else if (sum != nullptr && sum->failed) {
        tensor.set(n * columns + c, kUnknown, type);
      } else {
        tensor.set(
            n * columns + c,
            sum == nullptr ? Certified{} : sum->elements[static_cast<std::size_t>(c)].value.value(),
            type);
      }
    }
  }
}

}  // namespace

GradientTensors gradient_tensors(const Problem& problem, const Upstream& upstream, unsigned bits,
                                 const WalkOptions& options, const std::optional<DType>& round_to,
                                 unsigned most_bits) {
  arithmetic_self_test();
  const bool rounded = round_to.has_value();
  GradientTensors tensors;
  const std::int64_t keys = problem.batches * problem.kv_heads * problem.keys;
  const std::int64_t queries = problem.batches * problem.heads * problem.queries;
  tensors.dq.resize(queries * problem.head_dim, rounded);
  tensors.dk.resize(keys * problem.head_dim, rounded);
  tensors.dv.resize(keys * problem.value_dim, rounded);
  const Settings settings{problem, upstream, bits, round_to, most_bits};
  const auto heads =
      walk_gradients(problem, upstream, RowSet(problem), bits, options, [&](const HeadView& head) {
        return std::make_unique<HeadWriter>(settings, head.b, head.kv_head, tensors);
      });
  RowSums sums;
  for (const auto& head : heads) sums.merge(static_cast<const HeadWriter&>(*head).row_sums);
  if (problem.bias) {
    const BiasShape shape = bias_shape(problem);
    write_sums(sums.bias, shape[0] * shape[1] * shape[2], shape[3], settings.type(), rounded,
               tensors.dbias);
  }
  if (problem.sinks) {
    write_sums(sums.sinks, problem.heads, 1, settings.type(), rounded, tensors.dsinks);
  }
  // A sum that double-double leaves open needs all its rows once more.
  if (settings.escalates() && tensors.dbias.undecided() + tensors.dsinks.undecided() > 0) {
    GradientTensors exact = gradient_tensors(problem, upstream, kFirstBits, options, round_to);
    tensors.dbias = std::move(exact.dbias);
    tensors.dsinks = std::move(exact.dsinks);
  }
  return tensors;
}

}  // namespace ringproof::oracle

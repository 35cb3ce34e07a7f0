#include "oracle/generate/gradient_mistakes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {
namespace {

/// An upstream gradient in binary64, changed element by element.
class ChangedUpstream {
 public:
  ChangedUpstream(const Problem& p, const Tensor& dout, const Tensor& dlse)
      : shape_{p.batches, p.heads, p.queries, p.value_dim} {
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        for (std::int64_t i = 0; i < p.queries; ++i) {
          this->dlse.push_back(dlse ? dlse.at(b, h, i, 0) : 0);
          for (std::int64_t c = 0; c < p.value_dim; ++c) {
            this->dout.push_back(dout ? dout.at(b, h, i, c) : 0);
          }
        }
      }
    }
  }
  std::vector<double> dout, dlse;  // [B, H, Nq, Dv], [B, H, Nq]

  Upstream view() const { return {tensor(dout, shape_[3]), tensor(dlse, 1), {}}; }

 private:
  Tensor tensor(const std::vector<double>& values, std::int64_t columns) const {
    Tensor view{.dtype = DType::f64,
                .shape = {shape_[0], shape_[1], shape_[2], columns},
                .stride = {shape_[1] * shape_[2] * columns, shape_[2] * columns, columns, 1},
                .data = reinterpret_cast<const std::byte*>(values.data())};
    return view;
  }
  std::array<std::int64_t, 4> shape_;
};

class Mistakes {
 public:
  Mistakes(const Case& input, const Contract& contract, const GradientBalls& truth,
           const WantsForm& wants, const VisitGradients& visit)
      : input_(input),
        p_(input.problem),
        contract_(contract),
        truth_(truth),
        wants_(wants),
        visit_(visit) {}

  void all() {
    const std::vector<GradientBall> no_dq(truth_.dq.size()), no_dk(truth_.dk.size()),
        no_dv(truth_.dv.size());
    form("DQ-ZERO", "dq is zero", {&no_dq, nullptr, nullptr});
    form("DQ-ZERO", "dk is zero", {nullptr, &no_dk, nullptr});
    form("DQ-ZERO", "dv is zero", {nullptr, nullptr, &no_dv});
    if (p_.head_dim == p_.value_dim) swaps();
    upstream("DOUT-IGNORED", "the upstream gradient is taken to be ones",
             [](ChangedUpstream& u) { std::fill(u.dout.begin(), u.dout.end(), 1.0); });
    upstream("LSE-GRAD", "the gradient through the LSE is left out",
             [](ChangedUpstream& u) { std::fill(u.dlse.begin(), u.dlse.end(), 0.0); });
    row_terms();
    heads_and_rows();
  }

 private:
  void form(const char* id, const std::string& words, const WrongGradients& wrong) {
    if (wants_(id, words)) visit_(id, words, wrong);
  }

  void swaps() {
    form("DKV-SWAP", "dk and dv are exchanged", {nullptr, &truth_.dv, &truth_.dk});
    std::vector<GradientBall> sum = truth_.dk;
    for (std::size_t n = 0; n < sum.size(); ++n) {
      const Certified &a = truth_.dk[n].exact, &b = truth_.dv[n].exact;
      const double total = a.hi + b.hi;
      // One rounding of the sum, and the low words that it leaves out.
      const double lost = std::abs(total) * 0x1p-52 + std::abs(a.lo) + std::abs(b.lo);
      sum[n].exact = {total, 0, a.radius + b.radius + lost};
      // Each of the two may be stored before it is added.
      const double stored = std::abs(a.hi) + std::abs(b.hi) + sum[n].bound + truth_.dv[n].bound;
      sum[n].bound += truth_.dv[n].bound + 2 * stored * output_rounding(contract_.out).u;
    }
    form("DKV-SWAP", "dk is the sum of dk and dv", {nullptr, &sum, nullptr});
  }

  template <class Change>
  void upstream(const char* id, const std::string& words, Change&& change,
                bool keys_alone = false) {
    if (!wants_(id, words)) return;
    ChangedUpstream changed(p_, input_.dout, input_.dlse);
    change(changed);
    const GradientBalls wrong = gradient_balls(p_, changed.view(), contract_);
    visit_(id, words, {keys_alone ? nullptr : &wrong.dq, &wrong.dk, &wrong.dv});
  }

  /// D_i = 0 is the right formula with another dlse: dP - D + dL stays dP + dL if dL grows by D.
  void row_terms() {
    row_term("the row term of the backward pass is zero", 1);
    row_term("the row term of the backward pass has the other sign", 2);
    row_term("the row term of the backward pass is halved", 0.5);
  }

  /// D_i grows by `factor` times itself, as part of dlse. What the rounding of that number hides
  /// belongs to the ball: an error x of dL_i moves dQ_i by at most |sigma x| max |k|, for
  /// sum p <= 1 and |f| <= 1, and every dK_j by |sigma x| max |q_i|.
  void row_term(const std::string& words, double factor) {
    if (!wants_("DELTA", words)) return;
    ChangedUpstream changed(p_, input_.dout, input_.dlse);
    std::vector<double> error(changed.dlse.size());  // [B, H, Nq]
    for (std::size_t n = 0; n < error.size(); ++n) {
      changed.dlse[n] += factor * truth_.row_term[n];
      error[n] = factor * truth_.row_term_radius[n] + 0x1p-52 * std::abs(changed.dlse[n]);
    }
    GradientBalls wrong = gradient_balls(p_, changed.view(), contract_);
    widen(error, wrong);
    visit_("DELTA", words, {&wrong.dq, &wrong.dk, &wrong.dv});
  }

  void widen(const std::vector<double>& error, GradientBalls& balls) const {
    const double scale = std::abs(p_.spec.scale_of(p_.head_dim)) * (1 + 0x1p-50);
    const auto heads = static_cast<std::size_t>(p_.batches * p_.kv_heads);
    const std::size_t rows = error.size() / heads,
                      of_dq = rows * static_cast<std::size_t>(p_.head_dim);
    const auto of_dk = static_cast<std::size_t>(p_.keys * p_.head_dim);
    for (std::size_t head = 0; head < heads; ++head) {  // with its group: rows lie together
      double of_keys = 0;
      for (std::size_t n = head * rows; n < (head + 1) * rows; ++n) {
        of_keys += scale * error[n] * balls.largest_query[n];
      }
      for (std::size_t n = head * of_dq; n < (head + 1) * of_dq; ++n) {
        balls.dq[n].exact.radius +=
            scale * error[n / static_cast<std::size_t>(p_.head_dim)] * balls.largest_key[head];
      }
      for (std::size_t n = head * of_dk; n < (head + 1) * of_dk; ++n) {
        balls.dk[n].exact.radius += of_keys;
      }
    }
  }

  /// Rows whose share of dk and dv is lost: other heads of a group, the rows of one rank.
  void heads_and_rows() {
    const auto silence = [&](auto&& lost) {
      return [this, lost](ChangedUpstream& u) {
        for (std::size_t n = 0; n < u.dlse.size(); ++n) {
          const auto row = static_cast<std::int64_t>(n);
          if (!lost(row / p_.queries % p_.heads, row % p_.queries)) continue;
          u.dlse[n] = 0;
          const auto columns = static_cast<std::size_t>(p_.value_dim);
          std::fill_n(u.dout.begin() + static_cast<std::ptrdiff_t>(n * columns), columns, 0.0);
        }
      };
    };
    const std::int64_t group = p_.group(), rows = p_.queries;
    if (group > 1) {
      upstream("GQA-GRAD", "dk and dv are those of the last head of a group",
               silence([group](std::int64_t h, std::int64_t) { return h % group != group - 1; }),
               true);
      upstream("GQA-GRAD", "dk and dv are those of the first head of a group",
               silence([group](std::int64_t h, std::int64_t) { return h % group != 0; }), true);
    }
    if (rows < 4) return;
    upstream("RING-HOPS", "dk and dv of the last quarter of the rows do not come home",
             silence([rows](std::int64_t, std::int64_t i) { return 4 * i >= 3 * rows; }), true);
  }

  const Case& input_;
  const Problem& p_;
  const Contract& contract_;
  const GradientBalls& truth_;
  const WantsForm& wants_;
  const VisitGradients& visit_;
};

}  // namespace

void visit_gradient_mistakes(const Case& input, const Contract& contract,
                             const GradientBalls& truth, const WantsForm& wants,
                             const VisitGradients& visit) {
  Mistakes(input, contract, truth, wants, visit).all();
}

}  // namespace ringproof::oracle

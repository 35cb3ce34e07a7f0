// Keeping the truth, and judging by it (known_truth.hpp).
#include "oracle/diagnose/known_truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/diagnose/judged_rows.hpp"
#include "oracle/judge/gradient_element.hpp"
#include "oracle/judge/gradient_judge.hpp"
#include "oracle/judge/gradient_walk.hpp"
#include "oracle/judge/input_types.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

/// Pairs of a query and a key that are kept, about 64 bytes each.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 22;

bool among(const std::vector<AnswerKind>& kinds, AnswerKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

void add_bound(double bound, Opinion& opinion) {
  if (!(bound > 0) || std::isinf(bound)) return;
  opinion.log_bounds += std::log(bound);
  ++opinion.bounds;
}

/// A row that the theory says nothing about has no scores; keys that it sees are not judged.
bool sees(const RowTruth& row, std::int64_t j) {
  return row.not_applicable.empty() && j >= row.keys.first && j < row.keys.last &&
         row.score[static_cast<std::size_t>(j - row.keys.first)] !=
             -std::numeric_limits<double>::infinity();
}

/// Keeps the rows of one KV head as they pass.
class Keeper final : public GradientGroup {
 public:
  explicit Keeper(const Problem& problem) : sums_(problem) {}
  GradientSums* sums() override { return &sums_; }
  void add_row(const HeadView&, RowTruth& row, RowGradients& gradients) override {
    rows.push_back(row);
    this->gradients.push_back(gradients);
  }
  void merge(GradientGroup& other) override {
    auto& later = static_cast<Keeper&>(other);
    rows.insert(rows.end(), std::make_move_iterator(later.rows.begin()),
                std::make_move_iterator(later.rows.end()));
    gradients.insert(gradients.end(), std::make_move_iterator(later.gradients.begin()),
                     std::make_move_iterator(later.gradients.end()));
    sums_.merge(later.sums_);
  }
  void finish(const HeadView&) override {}
  GradientSums take_sums() { return std::move(sums_); }

  std::vector<RowTruth> rows;
  std::vector<RowGradients> gradients;

 private:
  GradientSums sums_;
};

}  // namespace

/// One KV head: what bounds read of it, and its rows.
struct KnownTruth::Head {
  Head(const Problem& problem, const Upstream& upstream, std::int64_t b, std::int64_t kv_head,
       bool with_gradients)
      : forward(problem, b, kv_head, Precision::fast) {
    if (!with_gradients) return;
    backward = std::make_unique<HeadGradients>(problem, upstream, forward);
    values = std::make_unique<BackwardHead>(problem, backward->keys(), backward->keys_stride(),
                                            forward.values(), forward.values_stride());
  }
  HeadTruth forward;
  std::unique_ptr<HeadGradients> backward{};
  std::unique_ptr<BackwardHead> values{};
  std::unique_ptr<GradientSums> sums{};
  std::size_t first = 0, last = 0;  // its rows, where all are kept
};

KnownTruth::~KnownTruth() = default;

KnownTruth::KnownTruth(const Case& input, const Contract& contract, const CheckOptions& options,
                       const Report& report)
    : input_(input) {
  const Problem& p = input.problem;
  const bool fits = p.batches * p.heads * p.queries * p.keys <= kMostPairs;
  gradients_kept_ = fits && std::any_of(report.answers.begin(), report.answers.end(),
                                        [](const AnswerReport& a) { return is_gradient(a.kind); });
  if (gradients_kept_) upstream_ = upstream_of(input, contract);
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.kv_heads; ++h) {
      heads_.push_back(std::make_unique<Head>(p, upstream_, b, h, gradients_kept_));
    }
  }
  const std::int64_t most =
      std::max<std::int64_t>(64, kMostPairs / std::max<std::int64_t>(1, p.keys));
  const RowSet judged = judged_rows(p, options, report, most);
  if (gradients_kept_) {
    const auto groups =
        walk_gradients(p, upstream_, RowSet(p), options.bits, options.walk,
                       [&](const HeadView&) { return std::make_unique<Keeper>(p); });
    for (std::size_t n = 0; n < groups.size(); ++n) {
      auto& keeper = static_cast<Keeper&>(*groups[n]);
      Head& head = *heads_[n];
      head.first = rows_.size();
      std::move(keeper.rows.begin(), keeper.rows.end(), std::back_inserter(rows_));
      std::move(keeper.gradients.begin(), keeper.gradients.end(), std::back_inserter(gradients_));
      head.last = rows_.size();
      head.sums = std::make_unique<GradientSums>(keeper.take_sums());
    }
    for (const std::unique_ptr<Head>& head : heads_) {  // none was visited without queries
      if (!head->sums) head->sums = std::make_unique<GradientSums>(p);
    }
    for (std::size_t n = 0; n < rows_.size(); ++n) {
      if (judged.contains({rows_[n].b, rows_[n].h, rows_[n].i})) all_.rows.push_back(n);
    }
    const RowSet keys =
        options.rows ? RowSet::keys_of(p, *options.rows, options.seed) : RowSet::keys_of(p);
    for (std::int64_t n = 0; n < keys.size(); ++n) all_.keys.push_back(keys.row(n));
    return;
  }
  rows_.resize(static_cast<std::size_t>(judged.size()));
  for (std::size_t n = 0; n < rows_.size(); ++n) all_.rows.push_back(n);
  std::vector<RowBlock> scratch(worker_count(options.walk));
  walk(p, chunks_of(p, judged), options.walk,
       [&](std::size_t worker, std::size_t, const Chunk& chunk, const HeadTruth& head) {
         certified_rows(p, judged, chunk, options.bits, head, scratch[worker],
                        [&](std::int64_t n, RowTruth& row) {
                          certify(p, row);
                          rows_[static_cast<std::size_t>(n)] = row;
                        });
       });
}

bool KnownTruth::holds(AnswerKind kind) const {
  if (!is_gradient(kind)) return true;
  return gradients_kept_ &&
         (kind == AnswerKind::dq || kind == AnswerKind::dk || kind == AnswerKind::dv);
}

const KnownTruth::Head& KnownTruth::head_of(std::size_t row) const {
  const Problem& p = input_.problem;
  const RowTruth& truth = rows_[row];
  return *heads_[static_cast<std::size_t>(truth.b * p.kv_heads + p.kv_head(truth.h))];
}

struct KnownTruth::Request {
  const Contract& contract;
  const std::vector<AnswerKind>& kinds;
  const Places& places;
  bool stop;
  const Visit& visit;
  const ElementVisit& visit_element;

  bool asks(AnswerKind kind) const { return among(kinds, kind); }
  void add(AnswerKind kind, std::size_t place, const TensorTally& tally, Opinions& all) const {
    if (!asks(kind)) return;
    of(kind, all).tally.merge(tally);
    if (visit) visit(kind, place, tally);
  }
  void tell(AnswerKind kind, const Row& place, std::int64_t column, double answer,
            const Certified& exact, double bound, const OutputRule& rule) const {
    if (!visit_element || std::isinf(bound)) return;
    visit_element(kind, place, column, field_element(answer, exact, bound, rule));
  }
  static Opinion& of(AnswerKind kind, Opinions& all) { return all[static_cast<std::size_t>(kind)]; }
};

Opinions KnownTruth::judge(const Contract& contract, const std::vector<AnswerKind>& kinds,
                           const Places& places, bool stop, const Visit& visit,
                           const ElementVisit& visit_element) const {
  Opinions opinions;
  const Request request{contract, kinds, places, stop, visit, visit_element};
  const bool forward = request.asks(AnswerKind::out) || request.asks(AnswerKind::lse);
  if (forward && !judge_rows(request, opinions)) return opinions;
  if (request.asks(AnswerKind::dq) && !judge_queries(request, opinions)) return opinions;
  if (request.asks(AnswerKind::dk) || request.asks(AnswerKind::dv)) judge_keys(request, opinions);
  return opinions;
}

/// False if it stopped at a refusal.
bool KnownTruth::judge_rows(const Request& request, Opinions& opinions) const {
  JudgeRules rules;
  rules.problem = &input_.problem;
  rules.contract = &request.contract;
  if (request.asks(AnswerKind::out)) {
    rules.out = &input_.find(AnswerKind::out)->tensor;
    rules.out_rule =
        output_rule(request.contract, judged_type(*rules.out, request.contract.out.dtype));
  }
  if (request.asks(AnswerKind::lse)) rules.lse = &input_.find(AnswerKind::lse)->tensor;
  Opinion& out = Request::of(AnswerKind::out, opinions);
  Opinion& lse = Request::of(AnswerKind::lse, opinions);
  RowJudge judge(rules);
  for (const std::size_t n : request.places.rows) {
    const RowTruth& row = rows_[n];
    if (!is_certified(row)) continue;
    const Tally tally = judge.evaluate(head_of(n).forward, row, false);
    request.add(AnswerKind::out, n, tally.out, opinions);
    request.add(AnswerKind::lse, n, tally.lse, opinions);
    if (row.not_applicable.empty() && !row.empty() && judge.bound().not_applicable.empty()) {
      for (const double bound : judge.bound().out) add_bound(bound, out);
      add_bound(judge.bound().lse, lse);
    }
    if (request.stop && (out.refused() || lse.refused())) return false;
  }
  return true;
}

/// False if it stopped at a refusal.
bool KnownTruth::judge_queries(const Request& request, Opinions& opinions) const {
  const Contract& contract = request.contract;
  const Tensor& answer = input_.find(AnswerKind::dq)->tensor;
  const OutputRule rule = output_rule(contract, judged_type(answer, contract.out.dtype));
  Opinion& dq = Request::of(AnswerKind::dq, opinions);
  RowGradientBound bound;
  for (const std::size_t n : request.places.rows) {
    const RowTruth& row = rows_[n];
    const RowGradients& gradients = gradients_[n];
    if (!gradients.not_applicable.empty() || gradients.failed) continue;
    bound_row_backward(contract, input_.problem, upstream_.given, *head_of(n).values, row,
                       gradients, bound, nullptr);
    if (!bound.not_applicable.empty()) continue;
    TensorTally tally;
    for (std::size_t d = 0; d < bound.dq.size(); ++d) {
      const auto column = static_cast<std::int64_t>(d);
      const Row place{row.b, row.h, row.i};
      const double value = answer.at(row.b, row.h, row.i, column);
      add_gradient_element(place, column, value, gradients.dq[d], bound.dq[d], rule, tally);
      request.tell(AnswerKind::dq, place, column, value, gradients.dq[d], bound.dq[d], rule);
      add_bound(bound.dq[d], dq);
    }
    request.add(AnswerKind::dq, n, tally, opinions);
    if (request.stop && dq.refused()) return false;
  }
  return true;
}

void KnownTruth::judge_keys(const Request& request, Opinions& opinions) const {
  const Problem& p = input_.problem;
  for (std::size_t n = 0; n < heads_.size(); ++n) {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < request.places.keys.size(); ++place) {
      const Row& key = request.places.keys[place];
      const bool here = static_cast<std::size_t>(key.b * p.kv_heads + key.h) == n;
      if (here && !heads_[n]->sums->not_applicable(key.i)) places.push_back(place);
    }
    if (places.empty()) continue;
    judge_keys(request, *heads_[n], places, opinions);
    if (!request.stop) continue;
    for (const AnswerKind kind : {AnswerKind::dk, AnswerKind::dv}) {
      if (Request::of(kind, opinions).refused()) return;
    }
  }
}

/// Keys of one KV head: `places` are their numbers among those of the request.
void KnownTruth::judge_keys(const Request& request, const Head& head,
                            const std::vector<std::size_t>& places, Opinions& opinions) const {
  const Problem& p = input_.problem;
  const Contract& contract = request.contract;
  const std::int64_t b = head.forward.batch(), kv_head = head.forward.kv_head();
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(p.keys));
  for (const std::size_t place : places) {
    wanted[static_cast<std::size_t>(request.places.keys[place].i)] = 1;
  }
  const GradientShape shape(contract, p, b, kv_head, wanted);
  GradientBoundSums sums(shape);
  RowGradientBound bound;
  for (std::size_t row = head.first; row < head.last; ++row) {
    const bool seen = std::any_of(places.begin(), places.end(), [&](std::size_t place) {
      return sees(rows_[row], request.places.keys[place].i);
    });
    if (!seen) continue;
    if (gradients_[row].failed) return;
    bound_row_backward(contract, p, upstream_.given, *head.values, rows_[row], gradients_[row],
                       bound, &sums);
    if (!bound.not_applicable.empty()) return;
  }
  sums.finish();
  const auto judge = [&](AnswerKind kind, std::int64_t columns, const auto& exact,
                         const auto& bound_of) {
    if (!request.asks(kind)) return;
    const Tensor& answer = input_.find(kind)->tensor;
    const OutputRule rule = output_rule(contract, judged_type(answer, contract.out.dtype));
    for (const std::size_t place : places) {
      const std::int64_t j = request.places.keys[place].i;
      TensorTally tally;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double value = answer.at(b, kv_head, j, c);
        add_gradient_element({b, kv_head, j}, c, value, exact(j, c), bound_of(j, c), rule, tally);
        request.tell(kind, {b, kv_head, j}, c, value, exact(j, c), bound_of(j, c), rule);
        add_bound(bound_of(j, c), Request::of(kind, opinions));
      }
      request.add(kind, place, tally, opinions);
    }
  };
  judge(
      AnswerKind::dk, p.head_dim,
      [&](std::int64_t j, std::int64_t d) { return head.sums->dk(j, d); },
      [&](std::int64_t j, std::int64_t d) { return sums.dk(j, d); });
  judge(
      AnswerKind::dv, p.value_dim,
      [&](std::int64_t j, std::int64_t c) { return head.sums->dv(j, c); },
      [&](std::int64_t j, std::int64_t c) { return sums.dv(j, c); });
}

std::int64_t KnownTruth::rows_that_see(const Row& key) const {
  const auto number = static_cast<std::size_t>(key.b * input_.problem.kv_heads + key.h);
  const Head& head = *heads_[number];
  std::int64_t count = 0;
  for (std::size_t row = head.first; row < head.last; ++row) count += sees(rows_[row], key.i);
  return count;
}

}  // namespace ringproof::oracle

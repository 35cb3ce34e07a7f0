// Judging drawn cases and counting (judged.hpp).
#include "tests/emulate/judged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace ringproof::emulate {
namespace {

using oracle::AnswerKind;

void merge(Campaign& into, const Campaign& from) {
  for (const auto& [contract, figures] : from.by_contract) into.by_contract[contract].add(figures);
  into.refused.insert(into.refused.end(), from.refused.begin(), from.refused.end());
  for (const auto& [reason, count] : from.undecided_because)
    into.undecided_because[reason] += count;
}

void run_one(const Draw& draw, Campaign& campaign,
             const std::function<void(const Draw&)>& refused) {
  const Judged judged = judge(draw);
  campaign.by_contract[draw.entry.contract()].add(judged);
  for (const oracle::AnswerReport& answer : judged.report.answers)
    if (answer.verdict == oracle::Verdict::undecided)
      ++campaign.undecided_because[std::string(name(answer.kind)) + ": " + answer.reason];
  if (!judged.refused()) return;
  campaign.refused.push_back(judged.complaint() + "; " + draw.description());
  if (refused) refused(draw);
}

}  // namespace

Judged judge(const Draw& draw) {
  oracle::CheckOptions options;
  options.walk.threads = 1;
  return {oracle::check(draw.as_case(), draw.contract(), options)};
}

double Judged::worst(AnswerKind kind) const {
  const oracle::AnswerReport* answer = report.find(kind);
  return answer != nullptr && answer->tally.worst_element
             ? answer->tally.worst_element->error_over_bound
             : 0;
}

double Judged::worst_functional() const {
  const oracle::AnswerReport* answer = report.find(AnswerKind::out);
  return answer != nullptr && answer->tally.worst_functional
             ? answer->tally.worst_functional->error_over_bound()
             : 0;
}

std::int64_t Judged::elements(AnswerKind kind) const {
  const oracle::AnswerReport* answer = report.find(kind);
  return answer != nullptr ? answer->tally.elements : 0;
}

namespace {

constexpr AnswerKind kGradients[] = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv,
                                     AnswerKind::dbias, AnswerKind::dsinks};

}  // namespace

double Judged::worst_gradient() const {
  double largest = 0;
  for (const AnswerKind kind : kGradients) largest = std::max(largest, worst(kind));
  return largest;
}

std::int64_t Judged::gradient_elements() const {
  std::int64_t sum = 0;
  for (const AnswerKind kind : kGradients) sum += elements(kind);
  return sum;
}

std::int64_t Judged::not_applicable() const {
  const oracle::AnswerReport* answer = report.find(AnswerKind::out);
  return answer != nullptr ? answer->tally.not_applicable : 0;
}

std::string Judged::complaint() const {
  std::string text;
  for (const oracle::AnswerReport& answer : report.answers) {
    if (answer.verdict != oracle::Verdict::fail) continue;
    const oracle::TensorTally& tally = answer.tally;
    text += fmt::format("{}: {} of {} elements and {} functionals refused", name(answer.kind),
                        tally.failed, tally.elements, tally.functional_failed);
    if (tally.worst_element) {
      const oracle::Element& e = *tally.worst_element;
      text += fmt::format(
          ", worst b {} h {} i {} column {}: answer {} exact {} box [{}, {}] ratio {:.3g}", e.row.b,
          e.row.h, e.row.i, e.column, e.answer, e.exact, e.accepted.low, e.accepted.high,
          e.error_over_bound);
    }
    text += "; ";
  }
  return text;
}

void ContractFigures::add(const Judged& judged) {
  ++cases;
  passed += judged.report.verdict == oracle::Verdict::pass;
  undecided += judged.report.verdict == oracle::Verdict::undecided;
  refused += judged.refused();
  out_elements += judged.elements(AnswerKind::out);
  lse_elements += judged.elements(AnswerKind::lse);
  gradient_elements += judged.gradient_elements();
  not_applicable_rows += judged.not_applicable();
  out = std::max(out, judged.worst(AnswerKind::out));
  lse = std::max(lse, judged.worst(AnswerKind::lse));
  functional = std::max(functional, judged.worst_functional());
  gradients = std::max(gradients, judged.worst_gradient());
}

void ContractFigures::add(const ContractFigures& other) {
  cases += other.cases, passed += other.passed, undecided += other.undecided,
      refused += other.refused;
  out_elements += other.out_elements, lse_elements += other.lse_elements;
  gradient_elements += other.gradient_elements;
  not_applicable_rows += other.not_applicable_rows;
  out = std::max(out, other.out), lse = std::max(lse, other.lse),
  functional = std::max(functional, other.functional);
  gradients = std::max(gradients, other.gradients);
}

std::int64_t Campaign::count() const {
  std::int64_t cases = 0;
  for (const auto& [contract, figures] : by_contract) cases += figures.cases;
  return cases;
}

Campaign run_campaign(const CampaignOptions& options) {
  std::vector<ZooEntry> entries;
  for (ZooEntry& entry : zoo())
    if (entry.contract().find(options.only) != std::string::npos)
      entries.push_back(std::move(entry));
  Campaign total;
  std::mutex mutex;
  const int threads = std::max(1, options.threads);
  const auto work = [&](int worker) {
    Campaign own;
    for (std::int64_t n = worker; n < options.count && !entries.empty(); n += threads) {
      const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(n);
      Draw drawn = draw_case(seed, entries[seed % entries.size()]);
      if (options.gradients) draw_gradients(drawn);
      run_one(drawn, own, [&](const Draw& draw) {
        const std::lock_guard lock(mutex);
        if (options.refused) options.refused(draw);
      });
    }
    const std::lock_guard lock(mutex);
    merge(total, own);
  };
  std::vector<std::jthread> pool;
  for (int worker = 1; worker < threads; ++worker) pool.emplace_back(work, worker);
  work(0);
  pool.clear();
  std::sort(total.refused.begin(), total.refused.end());
  return total;
}

void write_markdown(std::ostream& out, const Campaign& campaign, bool every_contract) {
  std::map<std::string, ContractFigures> rows;
  const std::vector<std::string> presets = zoo_presets();
  for (const auto& [contract, figures] : campaign.by_contract) {
    std::string key = contract;
    if (!every_contract) {
      // The longest preset name at its start: "fp32-gpu-ring4" belongs to fp32-gpu.
      for (const std::string& preset : presets)
        if (contract.find(preset) <= 9 && (key == contract || preset.size() > key.size()))
          key = preset;
    }
    rows[key].add(figures);
  }
  out << "| contract | cases | PASS | UNDECIDED | FAIL | out elements | out | LSE | functional | "
         "gradient elements | gradients |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  ContractFigures total;
  const auto line = [&](const std::string& name, const ContractFigures& f) {
    out << fmt::format("| {} | {} | {} | {} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {} | {:.3f} |\n",
                       name, f.cases, f.passed, f.undecided, f.refused, f.out_elements, f.out,
                       f.lse, f.functional, f.gradient_elements, f.gradients);
  };
  for (const auto& [name, figures] : rows) {
    line(name, figures);
    total.add(figures);
  }
  line("all", total);
}

}  // namespace ringproof::emulate

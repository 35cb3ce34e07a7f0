// Problems from files (cases.hpp).
#include "tests/suite/cases.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/load.hpp"
#include "oracle/case/stored_view.hpp"
#include "tests/suite/interrupt.hpp"

namespace ringproof::suite {
namespace {

namespace fs = std::filesystem;

/// The stored axes of a tensor in canonical places; empty: its shape is its own.
oracle::AxisList axes_of(const std::string& name, oracle::AxisOrder order) {
  constexpr std::string_view kFeatures[] = {"q", "k", "v", "q_scale", "k_scale", "v_scale", "dout"};
  if (std::find(std::begin(kFeatures), std::end(kFeatures), name) != std::end(kFeatures)) {
    return oracle::feature_axes(order);
  }
  return name == "dlse" ? oracle::row_axes(order) : oracle::AxisList{};
}

double number(const oracle::StoredTensor& tensor, const std::byte* place) {
  if (tensor.dtype == oracle::DType::boolean) return *place == std::byte{0} ? 0 : 1;
  return oracle::is_float(tensor.dtype)
             ? oracle::decode(tensor.dtype, place)
             : static_cast<double>(oracle::decode_integer(tensor.dtype, place));
}

/// The table of a stored tensor, in its own type.
Table table_of(const oracle::Source& source, const std::string& name,
               const oracle::StoredTensor& tensor, oracle::AxisOrder order) {
  Table table{tensor.dtype, tensor.shape, {}};
  const oracle::AxisList axes = axes_of(name, order);
  if (axes.empty()) {
    const auto width = static_cast<Index>(oracle::size_of(tensor.dtype));
    for (Index n = 0; n < tensor.elements(); ++n) {
      table.values.push_back(number(tensor, tensor.data + n * width));
    }
    return table;
  }
  const oracle::Tensor view = oracle::view(source, name, tensor, axes);
  table.shape.assign(view.shape.begin(), view.shape.end());
  for (Index b = 0; b < view.shape[0]; ++b) {
    for (Index h = 0; h < view.shape[1]; ++h) {
      for (Index n = 0; n < view.shape[2]; ++n) {
        for (Index d = 0; d < view.shape[3]; ++d) {
          table.values.push_back(number(tensor, view.address(b, h, n, d)));
        }
      }
    }
  }
  return table;
}

void fit(Table& table, const std::string& name, oracle::DType type) {
  for (const double value : table.values) {
    if (oracle::representable(type, value)) continue;
    throw NumbersDoNotFit{"numbers of " + name + " do not fit " + std::string(oracle::name(type)) +
                          ", the input type of the contract"};
  }
  table.dtype = type;
}

/// A name for each file of the paths; folders give their case files, sorted.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code unknown;
    if (!fs::is_directory(path, unknown)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".safetensors") inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw oracle::BadInput(path + ": no case files (*.safetensors)");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

struct CaseResult {
  Word word = Word::pass;
  std::string reason{};
};

CaseResult run_case(Trial& trial, const std::string& path, const SuiteOptions& options) {
  trial.judgements() = {};
  try {
    trial.judged(read_draft(path, trial));
  } catch (const NumbersDoNotFit& refusal) {
    return {Word::skipped, refusal.why};
  } catch (const NotSupported& refusal) {
    return {Word::skipped, "not supported: " + text_of(refusal.asked)};
  } catch (const std::length_error&) {
    return {Word::skipped, "larger than the memory that is shared with the kernel"};
  } catch (const Failure& failure) {
    std::string reason = failure.what;
    if (!options.folder.empty()) {
      fs::create_directories(options.folder);
      const std::string answer = options.folder + "/" + fs::path(path).filename().string();
      trial.write(answer, failure.draft, failure.answer);
      reason += "\n          case: " + answer;
    }
    return {Word::fail,
            reason + "\n          repeat: " + options.command + " --cases '" + path + "'"};
  }
  const std::string undecided = trial.judgements().never_decided();
  return undecided.empty() ? CaseResult{} : CaseResult{Word::undecided, undecided};
}

}  // namespace

Draft read_draft(const std::string& path, const Trial& trial) {
  const oracle::LoadedCase loaded = oracle::load_case(path, {});
  const oracle::Source& source = loaded.problem();
  const oracle::Problem checked =
      oracle::assemble_case(source, oracle::Source{path, {}}, loaded.spec).problem;
  Draft draft;
  draft.spec = loaded.spec;
  draft.spec.contract.clear(), draft.spec.problem.clear(), draft.spec.problem_sha256.clear();
  draft.spec.lse_base.reset();
  if (!trial.can(Feature::ranks)) draft.spec.ranks.reset(), draft.spec.ring.reset();
  draft.batches = checked.batches, draft.heads = checked.heads, draft.kv_heads = checked.kv_heads;
  draft.queries = checked.queries, draft.keys = checked.keys;
  draft.head_dim = checked.head_dim, draft.value_dim = checked.value_dim;
  for (const auto& [name, tensor] : source.tensors) {
    const oracle::TensorRole role = oracle::role_of(name);
    if (role == oracle::TensorRole::answer) continue;
    const bool upstream = role == oracle::TensorRole::upstream;
    if (upstream && !trial.can(Feature::gradients)) continue;
    if (name == "dlse" && !trial.can(Feature::lse)) continue;
    Table table = table_of(source, name, tensor, loaded.spec.layout);
    if (name == "q" || name == "k" || name == "v" || name == "dout") {
      fit(table, name, trial.types().input);
    } else if (name == "bias" || name == "sinks" || name == "dlse") {
      fit(table, name, trial.types().addition);
    }
    draft.gradients = draft.gradients || upstream;
    draft.tables[name] = std::move(table);
  }
  return draft;
}

int run_cases(Trial& trial, const std::vector<std::string>& paths, const SuiteOptions& options,
              std::ostream& stream, const Probed& probed) {
  const std::vector<std::string> files = files_of(paths);
  Outcome outcome;
  if (probed.death) {
    stream << "FAIL      " << probed.death->what
           << "\n          problem: " << describe(probed.death->draft)
           << "\n          repeat: " << options.command << '\n';
    outcome.laws.push_back({.word = Word::fail});
  } else if (!probed.plain) {
    stream << kNotPlain;
  }
  std::map<Word, int> count;
  for (std::size_t n = 0; n < files.size() && probed.plain; ++n) {
    check_interrupt();
    if (options.progress) {
      options.progress({.laws_done = static_cast<int>(n),
                        .laws = static_cast<int>(files.size()),
                        .law = files[n],
                        .problem = 1,
                        .problems = 1,
                        .calls = trial.calls()});
    }
    const CaseResult result = run_case(trial, files[n], options);
    if (options.progress) options.progress({});
    std::string word(text_of(result.word));
    word.resize(10, ' ');
    stream << word << files[n] << '\n';
    if (!result.reason.empty()) stream << "          " << result.reason << '\n';
    stream.flush();
    ++count[result.word];
    outcome.laws.push_back({.word = result.word});
  }
  stream << files.size() << " cases:";
  for (const auto& [word, cases] : count) stream << ' ' << cases << ' ' << text_of(word);
  stream << "\ncontract: " << trial.contract() << '\n';
  return exit_code(outcome);
}

}  // namespace ringproof::suite

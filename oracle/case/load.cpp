// Finding the problem of an answer (load.hpp).
#include "oracle/case/load.hpp"

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/sha256.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

struct LoadedFile {
  Source source;
  std::shared_ptr<MappedFile> file;
  std::optional<Spec> spec;
  SpecKeys keys;
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw BadInput(path + ": " + what);
}

LoadedFile load_file(const std::string& path, const std::optional<std::string>& spec_file) {
  LoadedFile loaded;
  loaded.file = std::make_shared<MappedFile>(path);
  SafeTensors container = parse_safetensors(loaded.file->bytes(), path);
  loaded.source = {path, std::move(container.tensors)};
  if (spec_file) {
    const MappedFile text(*spec_file);
    const auto bytes = text.bytes();
    const std::string json(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    loaded.spec = parse_spec(json, *spec_file, &loaded.keys);
  } else if (container.spec) {
    loaded.spec = parse_spec(*container.spec, path, &loaded.keys);
  }
  check_table(loaded.source);
  return loaded;
}

std::string beside(const std::string& path, const std::string& file) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? file : path.substr(0, slash + 1) + file;
}

}  // namespace

std::string named_problem(const std::string& path, const std::optional<std::string>& spec_file) {
  try {
    const LoadedFile answer = load_file(path, spec_file);
    if (!answer.spec || answer.spec->problem.empty()) return "";
    return beside(path, answer.spec->problem);
  } catch (const BadInput&) {
    return "";  // whoever reads it says what is wrong with it
  }
}

LoadedCase load_case(const std::string& path, const CaseOptions& options, FilePart part) {
  LoadedFile answer = load_file(path, options.spec_file);
  if (!answer.spec) {
    refuse(path, "has no spec: metadata key \"ringproof\" is missing, and --spec names no file");
  }
  LoadedCase result{std::move(answer.source), {}, *answer.spec, {answer.file}};
  const std::string& named = answer.spec->problem;
  if (result.answer.find("q") != nullptr) {
    if (options.problem_file) refuse(path, "holds q itself, so --problem has no use");
    if (!named.empty()) refuse(path, "holds q itself, so spec key \"problem\" has no use");
    return result;
  }
  if (!options.problem_file && named.empty()) {
    refuse(path,
           "tensor \"q\" is missing, and neither spec key \"problem\" nor --problem names the file "
           "that has it");
  }
  const std::string problem_path = options.problem_file.value_or(beside(path, named));
  for (const auto& [name, tensor] : result.answer.tensors) {
    const bool says_rows = name == "positions_q" || name == "positions_k";
    if (role_of(name) != TensorRole::problem || (part == FilePart::shard && says_rows)) continue;
    refuse_tensor(result.answer, name, "belongs to the problem file, " + problem_path);
  }

  LoadedFile problem = load_file(problem_path, std::nullopt);
  if (problem.source.find("q") == nullptr)
    refuse(problem_path, "tensor \"q\" is missing (problem of " + path + ")");
  for (const auto& [name, tensor] : problem.source.tensors) {
    if (role_of(name) != TensorRole::answer) continue;
    refuse_tensor(problem.source, name, "an answer in a problem file (problem of " + path + ")");
  }
  if (problem.keys.count("contract") != 0) {
    refuse(problem_path, "spec key \"contract\" in a problem file (problem of " + path + ")");
  }
  const std::string& digest = answer.spec->problem_sha256;
  if (!digest.empty() && sha256_hex(problem.file->bytes()) != digest) {
    refuse(path, "spec key \"problem_sha256\" is not the digest of " + problem_path);
  }
  if (problem.spec) {
    result.spec =
        join_specs(*answer.spec, answer.keys, path, *problem.spec, problem.keys, problem_path);
  }
  result.storage.push_back(problem.file);
  result.elsewhere = std::move(problem.source);
  return result;
}

}  // namespace ringproof::oracle

// No conforming kernel is refused: the zoo of presets and variants, with real roundings, before
// check().
// RINGPROOF_EMULATE_COUNT and RINGPROOF_EMULATE_SEED lengthen and move the run.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "oracle/case/case_file.hpp"
#include "tests/emulate/functions.hpp"
#include "tests/emulate/judged.hpp"
#include "tests/emulate/kernel.hpp"
#include "tests/support/property.hpp"

namespace ringproof::emulate {
namespace {

std::int64_t from_environment(const char* name, std::int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

TEST_CASE("no conforming kernel is refused", "[emulate]") {
  CampaignOptions options{
      .first_seed = static_cast<std::uint64_t>(from_environment("RINGPROOF_EMULATE_SEED", 1)),
      .count = from_environment("RINGPROOF_EMULATE_COUNT", static_cast<std::int64_t>(zoo().size())),
      .threads = 2};
  std::cout << "seeds " << options.first_seed << " to "
            << options.first_seed + static_cast<std::uint64_t>(options.count) - 1 << '\n';
  const Campaign campaign = run_campaign(options);
  write_markdown(std::cout, campaign, false);
  for (const std::string& line : campaign.refused) FAIL_CHECK(line);
  CHECK(campaign.count() == options.count);
}

TEST_CASE("the zoo holds every preset and every variant", "[emulate]") {
  std::set<std::string> presets;
  std::string names;
  for (const ZooEntry& entry : zoo()) {
    presets.insert(entry.preset);
    names += entry.name() + " ";
    oracle::Spec spec;
    if (entry.kind != Kind::none && entry.count == 0) spec.ranks = 3;
    INFO(entry.contract());
    CHECK_NOTHROW(oracle::read_contract(entry.contract(), spec));
  }
  for (const std::string& preset : oracle::preset_names()) CHECK(presets.count(preset) == 1);
  for (const std::string& variant : zoo_variants()) CHECK(names.find(variant) != std::string::npos);
}

TEST_CASE("casts agree with the judge's storage types", "[emulate]") {
  const std::pair<SmallFloat, oracle::DType> formats[] = {{kBf16, oracle::DType::bf16},
                                                          {kFp16, oracle::DType::f16},
                                                          {kE4m3, oracle::DType::f8_e4m3},
                                                          {kFp32, oracle::DType::f32}};
  test::property("cast(x) is the nearest number of the type", [&](std::int32_t significand,
                                                                  std::int8_t exponent) {
    for (const auto& [format, dtype] : formats) {
      const double x = std::ldexp(static_cast<double>(significand), exponent / 3 - 31);
      if (std::fabs(x) < 0.9 * oracle::format_of(dtype).largest)
        RC_ASSERT(cast(x, format) == oracle::round_nearest(dtype, x));
    }
  });
}

TEST_CASE("what a query sees is read alike by the emulated kernel and by the judge", "[emulate]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Draw draw = draw_case(seed);
    const oracle::Problem& p = draw.owned.problem;
    std::int64_t different = 0;
    for (std::int64_t b = 0; b < p.batches; ++b)
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < p.queries; ++i)
          for (std::int64_t j = 0; j < p.keys; ++j)
            different += sees(p, b, h, i, j) != oracle::visible(p, b, h, i, j);
    INFO(draw.description());
    CHECK(different == 0);
  }
}

TEST_CASE("a kernel's mode of flushing ends with the kernel", "[emulate]") {
  volatile float tiny = 1e-40f;
  {
    const FlushSubnormals flush(true);
    CHECK(tiny * 1.0f == 0.0f);
  }
  CHECK(tiny * 1.0f > 0.0f);
}

TEST_CASE("a drawn case written to a file is judged as in memory", "[emulate]") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "ringproof-emulate-test.safetensors").string();
  for (std::uint64_t seed = 0; seed < 40; seed += 3) {
    const Draw draw = draw_case(seed);
    INFO(draw.description());
    draw.write(path);
    const oracle::Case file = oracle::read_case(path);
    const oracle::Report from_file = oracle::check(
        file, oracle::read_contract(file.problem.spec.contract, file.problem.spec), {});
    const Judged in_memory = judge(draw);
    CHECK(from_file.verdict == in_memory.report.verdict);
    CHECK(from_file.contract_hash == in_memory.report.contract_hash);
    CHECK(Judged{from_file}.worst(oracle::AnswerKind::out) ==
          in_memory.worst(oracle::AnswerKind::out));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ringproof::emulate

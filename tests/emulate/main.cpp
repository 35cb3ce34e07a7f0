// ringproof-emulate: draws conforming kernels and judges them. Prints each false alarm with the
// command
// that repeats it, a table of the largest error over bound, and exits with 1 if anything was
// refused.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/emulate/judged.hpp"

using namespace ringproof;

int main(int argc, char** argv) {
  CLI::App app{"Draws conforming kernels (contract x mask x inputs) and judges their answers"};
  emulate::CampaignOptions options{.count = 2000, .threads = 2};
  std::string markdown, directory;
  bool every_contract = false, list = false, write_all = false;
  app.add_option("--count", options.count, "how many cases");
  app.add_option("--seed", options.first_seed, "first seed; case n has seed S + n");
  app.add_option("--threads", options.threads, "threads");
  app.add_option("--only", options.only,
                 "contracts that contain this; seeds then go round among them");
  app.add_option("--write", directory, "write refused cases into this folder");
  app.add_flag("--all", write_all, "with --write: every case, unjudged");
  app.add_option("--markdown", markdown, "write the table to this file");
  app.add_flag("--every-contract", every_contract,
               "a row for every contract, not for every preset");
  app.add_flag("--list", list, "print the contracts and stop");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      for (const emulate::ZooEntry& entry : emulate::zoo()) std::cout << entry.contract() << '\n';
      return 0;
    }
    if (!directory.empty()) std::filesystem::create_directories(directory);
    const auto write = [&](const emulate::Draw& draw) {
      draw.write(directory + "/seed-" + std::to_string(draw.seed) + ".safetensors");
    };
    if (write_all) {
      for (std::int64_t n = 0; n < options.count; ++n)
        write(emulate::draw_case(options.first_seed + static_cast<std::uint64_t>(n)));
      return 0;
    }
    if (!directory.empty()) options.refused = write;
    const emulate::Campaign campaign = emulate::run_campaign(options);
    for (const std::string& line : campaign.refused) std::cout << "FALSE ALARM " << line << '\n';
    write_markdown(std::cout, campaign, every_contract);
    for (const auto& [reason, count] : campaign.undecided_because)
      std::cout << count << " x UNDECIDED " << reason << '\n';
    if (!markdown.empty()) {
      std::ofstream file(markdown);
      write_markdown(file, campaign, every_contract);
    }
    return campaign.refused.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "ringproof-emulate: " << error.what() << '\n';
    return 2;
  }
}

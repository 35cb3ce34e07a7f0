// tutorial-05: what a rank holds and what it sends, counted by a number type that counts; and from
// which block size on the sending hides behind the arithmetic.
#include <algorithm>
#include <utility>

#include "tutorials/support/counted.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

constexpr Index b = 16, D = 8;  // rows of a rank, components; values have as many

/// (16), term by term: what a rank holds if it has room for n blocks.
struct Tally {
  long queries, states, blocks, scores;
  long sum() const { return queries + states + blocks + scores; }
};
// [tally]
constexpr Tally tally(long b, long D, long n) {
  return {.queries = b * D, .states = b * (D + 2), .blocks = n * 2 * b * D, .scores = b * b};
}
// [/tally]

void print_flat() {
  fmt::print("{} rows a rank, {} components\n", b, D);
  fmt::print(
      "ranks  tokens   own block let go: alive, a rank more   own block kept: alive, a rank "
      "more\n");
  for (const Index ranks : {2, 4, 8, 16}) {
    fmt::print("{:>5} {:>7}", ranks, ranks * b);
    for (const bool keep : {false, true}) {
      const long most = measure(ranks, b, D, keep).most_alive;
      const long more = measure(ranks + 1, b, D, keep).most_alive - most;
      fmt::print("{:>25} {:>12}", most, more);
    }
    fmt::print("\n");
  }
}

/// The document's tally (line 91) in numbers, and what the counted ring has besides.
void print_document() {
  const Tally kept = tally(b, D, 3);
  const long tallied = 3 * b * D + 2 * b * D + b * D, sums = 2 * b;
  const long alive = measure(2, b, D, false).most_alive;
  fmt::print("document, 3bd + 2bd + bd             {:>5}\n", tallied);
  fmt::print("m and l of {} rows                   {:>5}\n", b, sums);
  fmt::print("both, own block let go               {:>5}\n", tallied + sums);
  fmt::print("own block kept, 8bd and m and l      {:>5}\n", kept.sum() - kept.scores);
  fmt::print("the {} of 2 ranks: 2 * {}, {} scores, {} of scratch\n", alive, tallied + sums,
             kept.scores, alive - 2 * (tallied + sums) - kept.scores);
}

void print_tally() {
  fmt::print("    b    D   blocks   queries    states      blocks      scores\n");
  for (const auto& [rows, width] : {std::pair<long, long>{16, 8}, {4096, 128}}) {
    for (const long n : {2, 3}) {
      const Tally t = tally(rows, width, n);
      fmt::print("{:>5} {:>4} {:>8} {:>9} {:>9} {:>11} {:>11}\n", rows, width, n, t.queries,
                 t.states, t.blocks, t.scores);
    }
  }
}

void print_traffic() {
  constexpr Index ranks = 4;
  fmt::print("per rank and step, {} components\n", D);
  fmt::print("rows b    numbers sent     products   products / number sent\n");
  for (const Index rows : {8, 16, 32, 64}) {
    const Cost cost = measure(ranks, rows, D, false);
    const long products = cost.products / (ranks * ranks);
    const auto sent = std::find_if(cost.trace.begin(), cost.trace.end(),
                                   [](const TraceEvent& e) { return e.action == Action::post; });
    const long numbers = sent->bytes / long(sizeof(Counted));
    fmt::print("{:>6} {:>15} {:>12} {:>24.2f}\n", rows, numbers, products,
               double(products) / double(numbers));
  }
}

void print_whole() {
  fmt::print(
      "one sequence of 256 tokens\nranks   rows b   numbers a rank sends   numbers it holds\n");
  for (const Index ranks : {2, 4, 8, 16}) {
    const Index rows = 256 / ranks;
    long sent = 0;
    for (const TraceEvent& event : measure(ranks, rows, D, false).trace) {
      if (event.rank == 0 && event.action == Action::post) {
        sent += event.bytes / long(sizeof(Counted));
      }
    }
    fmt::print("{:>5} {:>8} {:>22} {:>18}\n", ranks, rows, sent, tally(rows, D, 2).sum());
  }
}

/// What one device holds of a sequence, with tiles inside: all of it alone, or its share of a ring.
void print_devices() {
  constexpr long kTokens = 65536, kComponents = 128, kTile = 64;
  fmt::print("{} tokens of {} components, tiles of {} by {}\n", kTokens, kComponents, kTile, kTile);
  fmt::print("                 devices   numbers a device holds\n");
  for (const long devices : {1, 4, 16, 64}) {
    Tally held = tally(kTokens / devices, kComponents, devices == 1 ? 1 : 2);
    held.scores = kTile * kTile;
    fmt::print("{:<16} {:>7} {:>24}\n", devices == 1 ? "FlashAttention" : "the ring", devices,
               held.sum());
  }
}

// [machine]
struct Machine {
  double operations;            // a second, F
  double bytes;                 // a second over a link, W
  double width;                 // bytes of a number, w
  double heads, heads_of_keys;  // H, Hkv
};

double compute_seconds(const Machine& machine, double b, double D) {
  return 4 * machine.heads * b * b * D / machine.operations;
}
double transfer_seconds(const Machine& machine, double b, double D) {
  return 2 * machine.heads_of_keys * b * D * machine.width / machine.bytes;
}
double threshold(const Machine& machine) {  // (17)
  return machine.width * machine.operations * machine.heads_of_keys /
         (2 * machine.bytes * machine.heads);
}
// [/machine]

constexpr Machine kExample{1e12, 1e10, 4, 1, 1};
constexpr double kWidth = 64;

void print_threshold() {
  constexpr double kRanks = 16;
  fmt::print("rows b   work, us   transfer, us   ring of 16, us   of it waiting\n");
  for (const double rows : {50, 100, 150, 200, 250, 300, 400}) {
    const double work = compute_seconds(kExample, rows, kWidth);
    const double transfer = transfer_seconds(kExample, rows, kWidth);
    const double ring = (kRanks - 1) * std::max(work, transfer) + work;
    fmt::print("{:>6} {:>10.2f} {:>14.2f} {:>16.2f} {:>13.1f} %\n", rows, 1e6 * work,
               1e6 * transfer, 1e6 * ring, 100 * (1 - kRanks * work / ring));
  }
  fmt::print("F / W = {}; threshold by (17), w / 2 times that: {} rows\n",
             kExample.operations / kExample.bytes, threshold(kExample));
}

void print_machines() {
  struct Row {
    const char* what;
    Machine machine;
  };
  fmt::print("{:<43} operations/s   bytes/s   w   H/Hkv   rows b\n", "");
  for (const auto& [what, m] :
       {Row{"the example", kExample},
        Row{"16 bits, neighbours in one box", {1e15, 4.5e11, 2, 8, 8}},
        Row{"16 bits, neighbours across a network", {1e15, 5e10, 2, 8, 8}},
        Row{"the same, eight query heads a key head", {1e15, 5e10, 2, 8, 1}}}) {
    fmt::print("{:<43} {:>12.1e} {:>9.1e} {:>3} {:>7} {:>8.0f}\n", what, m.operations, m.bytes,
               m.width, m.heads / m.heads_of_keys, threshold(m));
  }
}

/// One bar each: what a rank of 16 rows holds with two blocks and with three.
void print_memory_figure() {
  constexpr double kLeft = 168, kScale = 0.36;
  Svg svg(680, 156, "What a rank holds, in numbers");
  svg.text(12, 22, fmt::format("Numbers a rank of {} rows holds, {} components", b, D), "start",
           14);
  for (const long n : {2, 3}) {
    const Tally t = tally(b, D, n);
    const double y = n == 2 ? 40 : 92;
    svg.text(kLeft - 8, y + 22, n == 2 ? "own block let go" : "own block kept", "end");
    double x = kLeft;
    const auto part = [&](long count, const std::string& words, long hue) {
      svg.rectangle(x, y, double(count) * kScale, 34, colour(hue, 4), "#555");
      svg.text(x + double(count) * kScale / 2, y + 15, words, "middle", 11);
      svg.text(x + double(count) * kScale / 2, y + 29, fmt::format("{}", count), "middle", 11);
      x += double(count) * kScale;
    };
    part(t.queries, "queries", 0);
    part(t.states, "states", 1);
    for (long block = 0; block < n; ++block) {
      part(t.blocks / n, block == 0 ? "in hand" : block == 1 ? "arriving" : "own", 2);
    }
    part(t.scores, "scores", 3);
  }
  fmt::print("{}", svg.finish());
}

/// Work grows with the square of b, transfer with b.
void print_threshold_figure() {
  constexpr double kLeft = 60, kBottom = 236, kX = 1.1, kY = 4.6;  // pixels a row, a microsecond
  Svg svg(600, 286, "Time of the work and of the transfer of one step against the rows of a rank");
  svg.text(12, 22, "Microseconds of one step", "start", 14);
  svg.line(kLeft, kBottom, 560, kBottom);
  svg.line(kLeft, 40, kLeft, kBottom);
  std::vector<Svg::Point> work, transfer;
  for (double rows = 0; rows <= 400; rows += 10) {
    const double x = kLeft + rows * kX;
    work.push_back({x, kBottom - 1e6 * compute_seconds(kExample, rows, kWidth) * kY});
    transfer.push_back({x, kBottom - 1e6 * transfer_seconds(kExample, rows, kWidth) * kY});
  }
  svg.polyline(work, deep_colour(0, 3));
  svg.polyline(transfer, deep_colour(2, 3));
  svg.text(work.back().x - 12, work.back().y + 6, "work", "end");
  svg.text(transfer.back().x, transfer.back().y - 8, "transfer", "end");
  const double cross = kLeft + threshold(kExample) * kX;
  svg.line(cross, 60, cross, kBottom, "#888");
  svg.text(cross - 6, 56, "the transfer sets the pace", "end", 12);
  svg.text(cross + 6, 56, "it hides behind the work", "start", 12);
  for (const int rows : {0, 100, 200, 300, 400}) {
    svg.text(kLeft + rows * kX, kBottom + 18, fmt::format("{}", rows), "middle", 12);
  }
  svg.text(310, kBottom + 40, "rows b of a rank");
  for (const int us : {10, 20, 30, 40}) {
    svg.text(kLeft - 8, kBottom - us * kY + 4, fmt::format("{}", us), "end", 12);
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"flat", print_flat},
                    {"document", print_document},
                    {"tally", print_tally},
                    {"traffic", print_traffic},
                    {"whole", print_whole},
                    {"devices", print_devices},
                    {"threshold", print_threshold},
                    {"machines", print_machines},
                    {"svg-memory", print_memory_figure},
                    {"svg-threshold", print_threshold_figure}});
}

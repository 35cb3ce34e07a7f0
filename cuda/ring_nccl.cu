// The ring between devices: the document's inner loop for one rank, with two streams. The copy
// stream passes blocks round while the compute stream folds the block in hand into the states; two
// buffers take turns. Events say when a block has arrived and when it has been read; nothing else
// orders the streams. The lines carry the numbers of reference/ring.hpp.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "cuda/description.hpp"
#include "cuda/kernels/launch.cuh"
#include "cuda/rank_group.hpp"
#include "reference/ring_schedule.hpp"

namespace ringproof::cuda {
namespace {

using reference::KeyBlock;
using reference::Problem;
using reference::RingPlan;
using reference::Shard;
using reference::ShardAnswer;
using reference::step_count;
using reference::Trace;
using reference::transfers_after;

/// A number of the problem as the device stores it; exact, because the caller chose the type so.
template <class T>
T stored(float number) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return {bf16_of_float(number)};
  } else if constexpr (std::is_same_v<T, Fp16>) {
    return {fp16_of_float(number)};
  } else {
    return number;
  }
}

/// Rows [rows, columns] at the start of rows of `width`, zeros behind.
template <class T>
void pad(std::span<const float> numbers,  // [rows, columns]
         Index columns, int width,
         std::span<T> padded) {  // [rows, width]
  std::fill(padded.begin(), padded.end(), stored<T>(0));
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    padded[n / columns * width + n % columns] = stored<T>(numbers[n]);
  }
}

/// The smallest width that holds a row of q and of v.
int padded_width(const Problem<float>& problem) {
  for (const int width : kWidths) {
    if (problem.head_dim <= width && problem.value_dim <= width) return width;
  }
  throw DeviceError("heads wider than " + std::to_string(kMostHeadDim) + " are not supported");
}

/// How many pairs of the rank's queries and the block's keys are visible, over all heads.
Index visible_pairs(const Problem<float>& problem, const reference::Sharding& queries, Index rank,
                    const reference::Sharding& keys, Index origin) {
  Index pairs = 0;
  for (const reference::Head& head : reference::all_heads(problem)) {
    for (const Index i : global_rows(queries, rank)) {
      for (const Index j : global_rows(keys, origin)) {
        pairs += reference::visible(problem, {head.b, head.h, i}, j) ? 1 : 0;
      }
    }
  }
  return pairs;
}

/// Everything that one rank has on its device.
template <class T>
class RankOnDevice {
 public:
  RankOnDevice(const Problem<float>& problem, const Shard<float>& shard, const RingPlan& plan,
               ncclComm_t communicator)
      : problem_(problem),
        plan_(plan),
        communicator_(communicator),
        queries_(shard.queries.sharding),
        keys_(shard.keys.sharding),
        rank_(shard.queries.rank),
        width_(padded_width(problem)),
        rows_(problem.batches * problem.heads * row_count(queries_, rank_)),
        description_(problem, copy_.get()),
        q_pinned_(rows_ * width_),
        kv_pinned_(block_size(rank_)),
        o_pinned_(rows_ * width_),
        lse_pinned_(rows_),
        q_(rows_ * width_),
        m_(rows_),
        l_(rows_),
        lse_(rows_),
        o_(rows_ * width_) {
    std::size_t largest = 0;
    for (Index origin = 0; origin < plan.ranks; ++origin) {
      largest = std::max(largest, block_size(origin));
    }
    for (auto& buffer : kv_) buffer = DeviceArray<T>(largest);
    const auto halves = kv_pinned_.numbers();
    pad<T>(shard.queries.q, problem.head_dim, width_, q_pinned_.numbers());
    pad<T>(shard.keys.k, problem.head_dim, width_, halves.first(halves.size() / 2));
    pad<T>(shard.keys.v, problem.value_dim, width_, halves.last(halves.size() / 2));
  }

  ShardAnswer<float> run(const Launches& kernel, Trace& trace);

 private:
  /// Numbers in a block: keys and values of one rank.
  std::size_t block_size(Index origin) const {
    return 2 * static_cast<std::size_t>(problem_.batches * problem_.kv_heads *
                                        row_count(keys_, origin) * width_);
  }
  std::size_t block_bytes(Index origin) const { return block_size(origin) * sizeof(T); }

  void upload();
  void pass_on(Index step, Trace& trace);
  BlockArguments<T> arguments(Index origin, int buffer) const;
  ShardAnswer<float> finish();

  const Problem<float>& problem_;
  const RingPlan& plan_;
  ncclComm_t communicator_;
  reference::Sharding queries_, keys_;
  Index rank_;
  int width_;
  std::size_t rows_;  // of all heads
  StreamOwner copy_ = make_stream(), compute_ = make_stream();
  EventOwner arrived_[2] = {make_event(), make_event()}, read_[2] = {make_event(), make_event()};
  Description description_;
  PinnedArray<T> q_pinned_, kv_pinned_;
  PinnedArray<float> o_pinned_, lse_pinned_;
  DeviceArray<T> q_, kv_[2];
  DeviceArray<float> m_, l_, lse_, o_;
};

/// L2: the rank's queries and its own block.
template <class T>
void RankOnDevice<T>::upload() {
  if (rows_ > 0) {
    check(cudaMemcpyAsync(q_.get(), q_pinned_.numbers().data(), q_.bytes(), cudaMemcpyHostToDevice,
                          copy_.get()));
  }
  if (block_size(rank_) > 0) {
    check(cudaMemcpyAsync(kv_[0].get(), kv_pinned_.numbers().data(), block_bytes(rank_),
                          cudaMemcpyHostToDevice, copy_.get()));
  }
  check(cudaEventRecord(arrived_[0].get(), copy_.get()));
}

/// L4 and L7: the block in hand to the neighbour, the next one into the other buffer.
template <class T>
void RankOnDevice<T>::pass_on(Index step, Trace& trace) {
  const Index P = plan_.ranks;
  const int here = static_cast<int>(step % 2), there = 1 - here;
  const Index block = block_at(step, rank_, P, plan_.direction);
  const Index next = block_at(step + 1, rank_, P, plan_.direction);
  const int to = static_cast<int>(send_to(rank_, P, plan_.direction));
  const int from = static_cast<int>(receive_from(rank_, P, plan_.direction));
  check(cudaStreamWaitEvent(copy_.get(), read_[there].get(), 0));
  check(ncclGroupStart());
  if (block_bytes(block) > 0) {
    check(ncclSend(kv_[here].get(), block_bytes(block), ncclInt8, to, communicator_, copy_.get()));
  }
  if (block_bytes(next) > 0) {
    check(
        ncclRecv(kv_[there].get(), block_bytes(next), ncclInt8, from, communicator_, copy_.get()));
  }
  check(ncclGroupEnd());
  check(cudaEventRecord(arrived_[there].get(), copy_.get()));
  trace.push_back(
      {step, rank_, reference::Action::post, block, to, static_cast<Index>(block_bytes(block)), 0});
}

template <class T>
BlockArguments<T> RankOnDevice<T>::arguments(Index origin, int buffer) const {
  BlockArguments<T> block;
  block.q = q_.get();
  block.k = kv_[buffer].get();
  block.v = kv_[buffer].get() + block_size(origin) / 2;
  block.m = m_.get(), block.l = l_.get(), block.o = o_.get();
  block.batches = static_cast<int>(problem_.batches);
  block.heads = static_cast<int>(problem_.heads);
  block.kv_heads = static_cast<int>(problem_.kv_heads);
  block.queries = static_cast<int>(row_count(queries_, rank_));
  block.keys = static_cast<int>(row_count(keys_, origin));
  block.width = width_;
  block.query_rows = description_.query_rows(queries_, rank_);
  block.key_rows = description_.key_rows(keys_, origin);
  block.rules = description_.rules();
  return block;
}

/// L8: the one division, and the way home.
template <class T>
ShardAnswer<float> RankOnDevice<T>::finish() {
  FinishArguments last;
  last.m = m_.get(), last.l = l_.get(), last.o = o_.get(), last.lse = lse_.get();
  last.batches = static_cast<int>(problem_.batches);
  last.heads = static_cast<int>(problem_.heads);
  last.queries = static_cast<int>(row_count(queries_, rank_));
  last.width = width_, last.rules = description_.rules();
  launch_finish(last, compute_.get());
  if (rows_ > 0) {
    check(cudaMemcpyAsync(o_pinned_.numbers().data(), o_.get(), o_.bytes(), cudaMemcpyDeviceToHost,
                          compute_.get()));
    check(cudaMemcpyAsync(lse_pinned_.numbers().data(), lse_.get(), lse_.bytes(),
                          cudaMemcpyDeviceToHost, compute_.get()));
  }
  check(cudaStreamSynchronize(compute_.get()));

  ShardAnswer<float> answer;
  const auto o = o_pinned_.numbers(), lse = lse_pinned_.numbers();
  answer.lse.assign(lse.begin(), lse.end());
  for (std::size_t row = 0; row < rows_; ++row) {
    const auto columns = o.subspan(row * width_, problem_.value_dim);
    answer.out.insert(answer.out.end(), columns.begin(), columns.end());
  }
  return answer;
}

template <class T>
ShardAnswer<float> RankOnDevice<T>::run(const Launches& kernel, Trace& trace) {
  const Index P = plan_.ranks;
  launch_empty_states(m_.get(), l_.get(), o_.get(), static_cast<int>(rows_), width_,
                      compute_.get());             // L1
  upload();                                        // L2
  for (Index t = 0; t < step_count(P); ++t) {      // L3
    if (transfers_after(t, P)) pass_on(t, trace);  // L4
    const int here = static_cast<int>(t % 2);
    const Index origin = block_at(t, rank_, P, plan_.direction);
    check(cudaStreamWaitEvent(compute_.get(), arrived_[here].get(), 0));
    const BlockArguments<T> block = arguments(origin, here);
    if (block.queries > 0 && block.keys > 0) kernel(block, compute_.get());  // L5, L6
    check(cudaEventRecord(read_[here].get(), compute_.get()));
    trace.push_back({t, rank_, reference::Action::compute, origin, -1, 0,
                     visible_pairs(problem_, queries_, rank_, keys_, origin)});
    if (transfers_after(t, P)) {  // L7 is the events' matter: no host code waits
      const Index next = block_at(t + 1, rank_, P, plan_.direction);
      trace.push_back({t, rank_, reference::Action::wait, next,
                       receive_from(rank_, P, plan_.direction),
                       static_cast<Index>(block_bytes(next)), 0});
    }
  }
  return finish();  // L8
}

template <class T>
reference::Answer<float> ring_on_devices(const Problem<float>& problem, const Kernel& kernel,
                                         const RingPlan& plan, Trace& trace) {
  const auto shards = scatter(problem, plan.layout, plan.ranks);
  std::vector<ShardAnswer<float>> parts(plan.ranks);
  std::vector<Trace> traces(plan.ranks);
  run_rank_group(static_cast<int>(plan.ranks), [&](int rank, ncclComm_t communicator) {
    RankOnDevice<T> device(problem, shards[rank], plan, communicator);
    parts[rank] = device.run(launches(kernel), traces[rank]);
  });
  for (const Trace& one : traces) trace.insert(trace.end(), one.begin(), one.end());
  return gather(problem, plan.layout, parts);
}

}  // namespace

reference::Answer<float> ring_attention(const Problem<float>& problem, Element element,
                                        const Kernel& kernel, const RingPlan& plan, Trace& trace) {
  if (kernel.contract(element).empty()) {
    throw DeviceError("kernel " + std::string(kernel.number) + " does not take this type");
  }
  if (element == Element::bf16) return ring_on_devices<Bf16>(problem, kernel, plan, trace);
  if (element == Element::fp16) return ring_on_devices<Fp16>(problem, kernel, plan, trace);
  return ring_on_devices<float>(problem, kernel, plan, trace);
}

}  // namespace ringproof::cuda

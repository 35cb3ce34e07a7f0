// The ring between devices: the document's inner loop for one rank, with two streams. The copy
// stream passes blocks round while the compute stream folds the block in hand into the states; two
// buffers take turns. Events say when a block has arrived and when it has been read; nothing else
// orders the streams. The lines carry the numbers of reference/ring.hpp.
#include "cuda/backward_pass.cuh"
#include "cuda/rank_group.hpp"

namespace ringproof::cuda {
namespace {

using reference::step_count;
using reference::transfers_after;

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

/// The inner loop of one rank.
template <class T>
class ForwardPass {
 public:
  explicit ForwardPass(RankOnDevice<T>& device)
      : device_(device),
        m_(device.rows),
        l_(device.rows),
        lse_(device.rows),
        o_(device.rows * device.width),
        o_pinned_(o_.size()),
        lse_pinned_(device.rows) {}

  ShardAnswer<float> run(const Launches& kernel, Trace& trace);

 private:
  ShardAnswer<float> finish();

  RankOnDevice<T>& device_;
  DeviceArray<float> m_, l_, lse_, o_;
  PinnedArray<float> o_pinned_, lse_pinned_;
};

/// L8: the one division, and the way home.
template <class T>
ShardAnswer<float> ForwardPass<T>::finish() {
  FinishArguments last;
  last.m = m_.get(), last.l = l_.get(), last.o = o_.get(), last.lse = lse_.get();
  last.batches = static_cast<int>(device_.problem.batches);
  last.heads = static_cast<int>(device_.problem.heads);
  last.queries = static_cast<int>(row_count(device_.queries, device_.rank));
  last.width = device_.width, last.rules = device_.description.rules();
  launch_finish(last, device_.compute.get());
  if (device_.rows > 0) {
    check(cudaMemcpyAsync(o_pinned_.numbers().data(), o_.get(), o_.bytes(), cudaMemcpyDeviceToHost,
                          device_.compute.get()));
    check(cudaMemcpyAsync(lse_pinned_.numbers().data(), lse_.get(), lse_.bytes(),
                          cudaMemcpyDeviceToHost, device_.compute.get()));
  }
  check(cudaStreamSynchronize(device_.compute.get()));

  ShardAnswer<float> answer;
  const auto o = o_pinned_.numbers(), lse = lse_pinned_.numbers();
  answer.lse.assign(lse.begin(), lse.end());
  for (std::size_t row = 0; row < device_.rows; ++row) {
    const auto columns = o.subspan(row * device_.width, device_.problem.value_dim);
    answer.out.insert(answer.out.end(), columns.begin(), columns.end());
  }
  return answer;
}

template <class T>
ShardAnswer<float> ForwardPass<T>::run(const Launches& kernel, Trace& trace) {
  const Index P = device_.plan.ranks;
  launch_empty_states(m_.get(), l_.get(), o_.get(), static_cast<int>(device_.rows), device_.width,
                      device_.compute.get());              // L1
  device_.upload();                                        // L2
  for (Index t = 0; t < step_count(P); ++t) {              // L3
    if (transfers_after(t, P)) device_.pass_on(t, trace);  // L4
    const int here = static_cast<int>(t % 2);
    const Index origin = block_at(t, device_.rank, P, device_.plan.direction);
    check(cudaStreamWaitEvent(device_.compute.get(), device_.arrived[here].get(), 0));
    BlockArguments<T> block = device_.arguments(origin, here);
    block.m = m_.get(), block.l = l_.get(), block.o = o_.get();
    if (block.queries > 0 && block.keys > 0) kernel(block, device_.compute.get());  // L5, L6
    check(cudaEventRecord(device_.read[here].get(), device_.compute.get()));
    trace.push_back(
        {t, device_.rank, reference::Action::compute, origin, -1, 0,
         visible_pairs(device_.problem, device_.queries, device_.rank, device_.keys, origin)});
    if (transfers_after(t, P)) {  // L7 is the events' matter: no host code waits
      const Index next = block_at(t + 1, device_.rank, P, device_.plan.direction);
      trace.push_back({t, device_.rank, reference::Action::wait, next,
                       receive_from(device_.rank, P, device_.plan.direction),
                       static_cast<Index>(device_.block_bytes(next)), 0});
    }
  }
  return finish();  // L8
}

/// What all ranks bring home.
struct RingResult {
  std::vector<ShardAnswer<float>> answers;
  std::vector<ShardGradients<float>> gradients;  // empty without a backward pass
};

/// Every rank on its own device; backward, too, if there are upstream gradients to begin with.
template <class T>
RingResult run_ring(const Problem<float>& problem, const std::vector<Shard<float>>& shards,
                    const reference::Upstream<float>* upstream, const Kernel& kernel,
                    const RingPlan& plan, Trace& trace) {
  RingResult result;
  result.answers.resize(plan.ranks);
  if (upstream != nullptr) result.gradients.resize(plan.ranks);
  std::vector<Trace> traces(plan.ranks);
  run_rank_group(static_cast<int>(plan.ranks), [&](int rank, ncclComm_t communicator) {
    RankOnDevice<T> device(problem, shards[rank], plan, communicator);
    result.answers[rank] = ForwardPass<T>(device).run(launches(kernel), traces[rank]);
    if constexpr (!std::is_same_v<T, float>) {
      if (upstream == nullptr) return;
      const auto& queries = shards[rank].queries;
      const auto kept = keep_for_backward(problem, *upstream, queries, result.answers[rank]);
      auto& gradients = result.gradients[rank];
      gradients = BackwardPass<T>(device, kept).run(traces[rank]);
      gradients.queries.dsinks.assign(problem.sinks ? problem.heads : 0, 0.0F);
      add_sink_gradients(problem, queries, kept, gradients.queries);  // B8
    }
  });
  for (const Trace& one : traces) trace.insert(trace.end(), one.begin(), one.end());
  return result;
}

RingResult run_ring(const Problem<float>& problem, const std::vector<Shard<float>>& shards,
                    const reference::Upstream<float>* upstream, Element element,
                    const Kernel& kernel, const RingPlan& plan, Trace& trace) {
  if (kernel.contract(element).empty()) {
    throw DeviceError("kernel " + std::string(kernel.number) + " does not take this type");
  }
  if (element == Element::bf16) {
    return run_ring<Bf16>(problem, shards, upstream, kernel, plan, trace);
  }
  if (element == Element::fp16) {
    return run_ring<Fp16>(problem, shards, upstream, kernel, plan, trace);
  }
  return run_ring<float>(problem, shards, upstream, kernel, plan, trace);
}

}  // namespace

reference::Answer<float> ring_attention(const Problem<float>& problem, Element element,
                                        const Kernel& kernel, const RingPlan& plan, Trace& trace) {
  const auto shards = scatter(problem, plan.layout, plan.ranks);
  return gather(problem, plan.layout,
                run_ring(problem, shards, nullptr, element, kernel, plan, trace).answers);
}

bool has_backward(const Problem<float>& problem, Element element) {
  return element != Element::fp32 && !problem.bias;
}

reference::AnswerAndGradients<float> ring_attention_backward(
    const Problem<float>& problem, const reference::Upstream<float>& upstream, Element element,
    const Kernel& kernel, const RingPlan& plan, Trace& trace) {
  if (!has_backward(problem, element)) throw DeviceError("no backward pass for this case");
  const auto shards = scatter(problem, plan.layout, plan.ranks);
  const RingResult result = run_ring(problem, shards, &upstream, element, kernel, plan, trace);
  return {gather(problem, plan.layout, result.answers),
          gather_gradients(problem, shards, result.gradients)};
}

}  // namespace ringproof::cuda

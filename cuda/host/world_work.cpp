// The work that streams hold: in order within a stream, at any legal time between them (world.hpp).
#include <cstring>

#include "cuda/host/world.hpp"

namespace ringproof::cuda_host {

void World::enqueue(Stream* stream, Operation operation) {
  operation.host = rank().clock;
  expect_stream(stream, operation.name)->queue.push_back(std::move(operation));
}

/// The first unfinished receive at the head of a stream of rank `to` for messages from `from`.
Message* World::receive_for(int communicator, int from, int to, Stream*& stream) {
  for (Stream& candidate : streams_) {
    if (candidate.queue.empty()) continue;
    Operation& head = candidate.queue.front();
    if (head.kind != OperationKind::exchange || head.communicator != communicator ||
        head.rank != to) {
      continue;
    }
    for (Message& message : head.messages) {
      if (message.send || message.peer != from || message.done) continue;
      stream = &candidate;
      return &message;
    }
  }
  return nullptr;
}

/// Messages between two ranks arrive in the order in which they were sent.
void World::add_ready_messages(Stream& stream, std::vector<Ready>& ready) {
  const Operation& head = stream.queue.front();
  for (std::size_t n = 0; n < head.messages.size(); ++n) {
    const Message& message = head.messages[n];
    bool first = !message.done;
    for (std::size_t earlier = 0; earlier < n && first; ++earlier) {
      const Message& other = head.messages[earlier];
      first = other.done || other.send != message.send || other.peer != message.peer;
    }
    if (!first) continue;
    const int index = static_cast<int>(n);
    const auto& wire =
        wires_[{head.communicator, message.send ? std::pair{head.rank, message.peer}
                                                : std::pair{message.peer, head.rank}}];
    Stream* receiver = nullptr;
    if (!message.send) {
      if (!wire.empty()) ready.push_back({&stream, index, Ready::unbuffer});
    } else if (wire.empty() &&
               receive_for(head.communicator, head.rank, message.peer, receiver) != nullptr) {
      ready.push_back({&stream, index, Ready::meet});
    } else if (options_.buffered_sends) {
      ready.push_back({&stream, index, Ready::buffer});
    }
  }
}

std::vector<World::Ready> World::ready_work() {
  std::vector<Ready> ready;
  for (Stream& stream : streams_) {
    if (stream.queue.empty()) continue;
    const Operation& head = stream.queue.front();
    if (head.kind == OperationKind::exchange) {
      add_ready_messages(stream, ready);
    } else if (head.kind != OperationKind::wait || head.record->done) {
      ready.push_back({&stream, -1, Ready::whole});
    }
  }
  return ready;
}

bool World::run_some_work() {
  const std::vector<Ready> ready = ready_work();
  if (ready.empty()) return false;
  const Ready& chosen = ready[random_() % ready.size()];
  quiet_ = true;
  try {
    if (chosen.message < 0) {
      run_work(chosen);
    } else {
      run_message(chosen);
    }
  } catch (...) {
    note_fault(std::current_exception());
  }
  quiet_ = false;
  running_stream_ = nullptr;
  return true;
}

void World::begin(Stream& stream, Operation& operation) {
  if (operation.number != 0) return;
  stream.clock.join(operation.host);
  operation.number = static_cast<std::uint32_t>(memory.operations.size());
  memory.operations.push_back({stream.worker, stream.clock.tick(stream.worker),
                               operation.name + " on " + stream.name, operation.place});
  operation.clock = stream.clock;
}

void World::run_work(const Ready& ready) {
  Stream& stream = *ready.stream;
  Operation& operation = stream.queue.front();
  begin(stream, operation);
  if (operation.kind == OperationKind::wait) {
    stream.clock.join(operation.record->clock);
  } else if (operation.kind == OperationKind::record) {
    operation.record->done = true;
    operation.record->clock = operation.clock;
  } else {
    running_stream_ = &stream;
    quiet_ = false;
    operation.work();
    quiet_ = true;
    running_stream_ = nullptr;
  }
  stream.queue.pop_front();
  ++counts_.operations;
}

/// The buffer of a message is read or written.
void World::touch(Stream& stream, Operation& operation, const Message& message) {
  if (message.bytes == 0) return;
  const Accessor by{operation.number, stream.device, 0, &operation.clock};
  const Access access = message.send ? Access::read : Access::write;
  if (!memory.holds(message.buffer)) {
    throw Fault(FaultClass::bounds, operation.name + " of memory that is no device's");
  }
  const auto fault = memory.note(message.buffer, message.bytes, access, by, nullptr);
  if (fault) throw Fault(*fault);
}

void World::end_if_complete(Stream& stream) {
  Operation& operation = stream.queue.front();
  for (const Message& message : operation.messages) {
    if (!message.done) return;
  }
  stream.clock.join(operation.clock);
  stream.queue.pop_front();
  ++counts_.operations;
}

namespace {

void expect_size(std::size_t sent, std::size_t expected, const Operation& operation) {
  if (sent == expected) return;
  throw Fault(FaultClass::usage, operation.name + " (" + text_of(operation.place) +
                                     "): " + std::to_string(sent) + " bytes are sent, " +
                                     std::to_string(expected) + " expected");
}

}  // namespace

void World::run_message(const Ready& ready) {
  Stream& stream = *ready.stream;
  Operation& operation = stream.queue.front();
  Message& message = operation.messages[static_cast<std::size_t>(ready.message)];
  begin(stream, operation);
  ++counts_.messages;
  message.done = true;
  if (ready.how == Ready::unbuffer) {
    auto& wire = wires_[{operation.communicator, {message.peer, operation.rank}}];
    expect_size(wire.front().bytes.size(), message.bytes, operation);
    operation.clock.join(wire.front().clock);
    touch(stream, operation, message);
    std::memcpy(message.buffer, wire.front().bytes.data(), message.bytes);
    wire.pop_front();
  } else if (ready.how == Ready::buffer) {
    touch(stream, operation, message);
    wires_[{operation.communicator, {operation.rank, message.peer}}].push_back(
        {{message.buffer, message.buffer + message.bytes}, operation.clock});
  } else {
    Stream* other = nullptr;
    Message& receive = *receive_for(operation.communicator, operation.rank, message.peer, other);
    Operation& receiver = other->queue.front();
    begin(*other, receiver);
    expect_size(message.bytes, receive.bytes, operation);
    touch(stream, operation, message);
    receiver.clock.join(operation.clock);
    touch(*other, receiver, receive);
    std::memcpy(receive.buffer, message.buffer, message.bytes);
    receive.done = true;
    if (other != &stream) end_if_complete(*other);
  }
  end_if_complete(stream);
}

void World::access_device(const void* address, std::size_t size, Access access) {
  if (size == 0) return;
  if (!memory.holds(address)) {
    throw Fault(FaultClass::bounds, running_stream_->queue.front().name + " (" +
                                        text_of(running_stream_->queue.front().place) +
                                        ") of memory that is neither a device's nor pinned");
  }
  const Operation& operation = running_stream_->queue.front();
  const auto fault =
      memory.note(address, size, access,
                  {operation.number, running_stream_->device, 0, &operation.clock}, nullptr);
  if (fault) throw Fault(*fault);
}

}  // namespace ringproof::cuda_host

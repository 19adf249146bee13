#include "gpu/plan.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "gpu/hazards.hpp"

namespace powerlab::gpu {
namespace {

constexpr std::size_t kPushBytes = 128;
constexpr std::uint64_t kStagingBytes = 16u << 20;
constexpr std::uint64_t kUploadTimeoutNs = 60'000'000'000;
constexpr std::uint32_t kNotANumber = 0x7fff7fff;  // as one float, and as two of 16 bits

std::size_t at(Room room) { return static_cast<std::size_t>(room); }

}  // namespace

Plan::Plan(std::shared_ptr<Device> device, const std::uint64_t (&bytes)[kRooms], bool synchronised)
    : device_(std::move(device)), synchronised_(synchronised) {
  constexpr auto kHost = vk::kMemoryHostVisible | vk::kMemoryHostCoherent;
  const vk::Flags constants = device_->host_constants() ? kHost : 0;
  const vk::Flags wanted[] = {kHost, kHost, vk::kMemoryDeviceLocal, vk::kMemoryDeviceLocal};
  const vk::Flags preferred[] = {vk::kMemoryDeviceLocal, vk::kMemoryHostCached, 0, constants};
  try {
    for (int i = 0; i < kRooms; ++i) {
      rooms_[i] = device_->allocate(bytes[i] > 0 ? bytes[i] : 4, wanted[i], preferred[i]);
    }
    pool_ = device_->make_commands();
  } catch (...) {
    for (auto& room : rooms_) device_->release(room);
    throw;
  }
}

Plan::~Plan() {
  const auto& f = device_->f();
  if (device_->abandoned()) return;
  if (descriptors_ != nullptr) f.DestroyDescriptorPool(device_->handle(), descriptors_, nullptr);
  for (auto* const queries : {queries_, marks_}) {
    if (queries != nullptr) f.DestroyQueryPool(device_->handle(), queries, nullptr);
  }
  for (auto& room : rooms_) device_->release(room);
  device_->destroy(pool_);
}

void Plan::upload(std::uint64_t offset, const void* data, std::uint64_t bytes) {
  auto& constants = rooms_[at(Room::kConstants)];
  if (offset > constants.bytes || bytes > constants.bytes - offset)
    throw std::runtime_error("constants out of bounds.");
  if (constants.mapped != nullptr && device_->host_constants()) {
    std::memcpy(static_cast<char*>(constants.mapped) + offset, data, bytes);
    return;
  }
  auto staging = this->staging(bytes);
  try {
    for (std::uint64_t done = 0; done < bytes; done += staging.bytes) {
      const auto part = std::min(staging.bytes, bytes - done);
      std::memcpy(staging.mapped, static_cast<const char*>(data) + done, part);
      const auto buffer = device_->begin(pool_, true);
      const vk::BufferCopy copy{0, offset + done, part};
      device_->f().CmdCopyBuffer(buffer, staging.buffer, constants.buffer, 1, &copy);
      barrier(buffer, vk::kAtTransfer, vk::kAccessTransferWrite, vk::kAtCompute, vk::kAccessShaderRead);
      device_->end(buffer);
      device_->submit(buffer, kUploadTimeoutNs);
      device_->free(pool_, buffer);
    }
  } catch (...) {
    device_->release(staging);
    throw;
  }
  device_->release(staging);
}

void Plan::download(Room room, std::uint64_t offset, void* data, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(running_);
  const auto& from = rooms_[at(room)];
  if (offset > from.bytes || bytes > from.bytes - offset) throw std::runtime_error("memory out of bounds.");
  auto staging = this->staging(bytes);
  try {
    for (std::uint64_t done = 0; done < bytes; done += staging.bytes) {
      const auto part = std::min(staging.bytes, bytes - done);
      const auto buffer = device_->begin(pool_, true);
      barrier(buffer, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtTransfer, vk::kAccessTransferRead);
      const vk::BufferCopy copy{offset + done, 0, part};
      device_->f().CmdCopyBuffer(buffer, from.buffer, staging.buffer, 1, &copy);
      barrier(buffer, vk::kAtTransfer, vk::kAccessTransferWrite, vk::kAtHost, vk::kAccessHostRead);
      device_->end(buffer);
      device_->submit(buffer, kUploadTimeoutNs);
      device_->free(pool_, buffer);
      std::memcpy(static_cast<char*>(data) + done, staging.mapped, part);
    }
  } catch (...) {
    device_->release(staging);
    throw;
  }
  device_->release(staging);
}

Piece Plan::staging(std::uint64_t bytes) {
  return device_->allocate(std::min(bytes, kStagingBytes), vk::kMemoryHostVisible | vk::kMemoryHostCoherent, 0);
}

void Plan::add(Dispatch dispatch) {
  if (!commands_.empty()) throw std::runtime_error("this plan is finished.");
  if (dispatch.push.size() > kPushBytes || dispatch.push.size() % 4 != 0) {
    throw std::runtime_error("a dispatch has too many numbers.");
  }
  for (const auto& binding : dispatch.bindings) {
    const auto& room = rooms_[at(binding.room)];
    if (binding.bytes == 0 || binding.offset > room.bytes || binding.bytes > room.bytes - binding.offset) {
      throw std::runtime_error(dispatch.label + " reads or writes outside its memory.");
    }
  }
  dispatches_.push_back(std::move(dispatch));
}

void Plan::finish(std::size_t last, std::vector<std::size_t> sections) {
  for (const auto& dispatch : dispatches_) pipelines_.push_back(device_->pipeline(dispatch.shader));
  make_descriptors();
  sections_ = std::move(sections);
  keeps_ = last < dispatches_.size();
  if (device_->info().tick_ns <= 0) sections_.clear();
  if (!sections_.empty()) {
    const vk::QueryPoolCreateInfo info{.count = static_cast<std::uint32_t>(sections_.size()) + 1};
    check(device_->f().CreateQueryPool(device_->handle(), &info, nullptr, &marks_), "count time");
  }
  std::uint32_t queues = 1;
  for (const auto& dispatch : dispatches_) queues = std::max(queues, dispatch.queue + 1);
  if (queues == 1) last = dispatches_.size();
  for (std::uint32_t queue = 0; queue < queues; ++queue) commands_.push_back(recorded(0, last, queue));
  if (last < dispatches_.size()) behind_ = recorded(last, dispatches_.size(), 0);
}

vk::CommandBuffer Plan::recorded(std::size_t first, std::size_t last, std::uint32_t queue) {
  const auto buffer = device_->begin(pool_, false);
  after_earlier_runs(buffer);
  if (first == 0 && queue == 0 && marks_ != nullptr) {
    device_->f().CmdResetQueryPool(buffer, marks_, 0, static_cast<std::uint32_t>(sections_.size()) + 1);
  }
  Hazards hazards;
  for (std::size_t i = first; i < last; ++i) {
    if (dispatches_[i].queue != queue) continue;
    if (queue == 0) mark(buffer, i);
    if (hazards.conflicts(dispatches_[i].bindings) && synchronised_) {
      barrier(buffer, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtCompute,
              vk::kAccessShaderRead | vk::kAccessShaderWrite);
      ++barriers_;
    }
    record(buffer, i);
  }
  if (last == dispatches_.size() && queue == 0) mark(buffer, last);
  barrier(buffer, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtHost, vk::kAccessHostRead);
  device_->end(buffer);
  return buffer;
}

void Plan::after_earlier_runs(vk::CommandBuffer buffer) {
  if (!keeps_) return;
  barrier(buffer, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtCompute,
          vk::kAccessShaderRead | vk::kAccessShaderWrite);
}

// Notes the time at which everything before a dispatch is done, where a section begins with it or the last one ends.
void Plan::mark(vk::CommandBuffer buffer, std::size_t dispatch) {
  if (marks_ == nullptr) return;
  for (std::uint32_t i = 0; i <= sections_.size(); ++i) {
    if ((i < sections_.size() ? sections_[i] : dispatches_.size()) != dispatch) continue;
    device_->f().CmdWriteTimestamp(buffer, dispatch == 0 ? vk::kAtTopOfPipe : vk::kAtCompute, marks_, i);
  }
}

std::vector<std::int64_t> Plan::section_ns() {
  const std::lock_guard<std::mutex> lock(running_);
  std::vector<std::int64_t> found;
  if (marks_ == nullptr) return found;
  const auto ticks = timestamps(marks_, static_cast<std::uint32_t>(sections_.size()) + 1);
  for (std::size_t i = 0; i + 1 < ticks.size(); ++i) found.push_back(device_->nanoseconds(ticks[i], ticks[i + 1]));
  return found;
}

void Plan::make_descriptors() {
  const auto& f = device_->f();
  std::uint32_t all = 0;
  for (const auto& dispatch : dispatches_) all += static_cast<std::uint32_t>(dispatch.bindings.size());
  const vk::DescriptorPoolSize size{vk::kStorageBufferDescriptor, all};
  const vk::DescriptorPoolCreateInfo pool{.max_sets = static_cast<std::uint32_t>(dispatches_.size()), .sizes = &size};
  check(f.CreateDescriptorPool(device_->handle(), &pool, nullptr, &descriptors_), "bind buffers");
  for (const auto& dispatch : dispatches_) {
    const auto layout = device_->set_layout(static_cast<int>(dispatch.bindings.size()));
    const vk::DescriptorSetAllocateInfo wanted{.pool = descriptors_, .layouts = &layout};
    vk::DescriptorSet set = nullptr;
    check(f.AllocateDescriptorSets(device_->handle(), &wanted, &set), "bind buffers");
    for (std::uint32_t i = 0; i < dispatch.bindings.size(); ++i) {
      const auto& binding = dispatch.bindings[i];
      const vk::DescriptorBufferInfo buffer{rooms_[at(binding.room)].buffer, binding.offset, binding.bytes};
      const vk::WriteDescriptorSet write{.set = set, .binding = i, .buffers = &buffer};
      f.UpdateDescriptorSets(device_->handle(), 1, &write, 0, nullptr);
    }
    sets_.push_back(set);
  }
}

void Plan::barrier(vk::CommandBuffer buffer, vk::Flags from, vk::Flags wrote, vk::Flags to, vk::Flags reads) {
  const vk::MemoryBarrier all{.source = wrote, .target = reads};
  device_->f().CmdPipelineBarrier(buffer, from, to, 0, 1, &all, 0, nullptr, 0, nullptr);
}

void Plan::record(vk::CommandBuffer buffer, std::size_t index) {
  const auto& f = device_->f();
  const auto& dispatch = dispatches_[index];
  const auto layout = device_->layout(static_cast<int>(dispatch.bindings.size()));
  f.CmdBindPipeline(buffer, vk::kBindCompute, pipelines_[index]);
  f.CmdBindDescriptorSets(buffer, vk::kBindCompute, layout, 0, 1, &sets_[index], 0, nullptr);
  if (!dispatch.push.empty()) {
    f.CmdPushConstants(buffer, layout, vk::kStageCompute, 0, static_cast<std::uint32_t>(dispatch.push.size()),
                       dispatch.push.data());
  }
  f.CmdDispatch(buffer, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
}

void Plan::put(std::span<const In> inputs) {
  auto* const base = static_cast<char*>(rooms_[at(Room::kInputs)].mapped);
  for (const auto& input : inputs) std::memcpy(base + input.offset, input.data, input.bytes);
}

void Plan::take(std::span<const Out> outputs) {
  const auto* const base = static_cast<const char*>(rooms_[at(Room::kOutputs)].mapped);
  for (const auto& output : outputs) std::memcpy(output.data, base + output.offset, output.bytes);
}

void Plan::run(std::span<const In> inputs, std::span<const Out> outputs, std::uint64_t timeout_ns) {
  const std::lock_guard<std::mutex> lock(running_);
  put(inputs);
  device_->submit(commands_, timeout_ns);
  if (behind_ != nullptr) device_->submit(behind_, timeout_ns);
  take(outputs);
}

void Plan::make_queries() {
  if (queries_ != nullptr) return;
  if (device_->info().tick_ns <= 0) throw std::runtime_error("this GPU cannot say how long its kernels take.");
  const vk::QueryPoolCreateInfo info{.count = static_cast<std::uint32_t>(dispatches_.size()) + 1};
  check(device_->f().CreateQueryPool(device_->handle(), &info, nullptr, &queries_), "count time");
}

std::vector<std::uint64_t> Plan::timestamps(vk::QueryPool queries, std::uint32_t count) {
  std::vector<std::uint64_t> found(count);
  const auto result = device_->f().GetQueryPoolResults(device_->handle(), queries, 0, count, 8 * found.size(),
                                                       found.data(), 8, vk::kResultsOf64Bits | vk::kResultsWait);
  check(result, "count time");
  return found;
}

std::vector<std::int64_t> Plan::run_timed(std::span<const In> inputs, std::span<const Out> outputs,
                                          std::uint64_t timeout_ns) {
  const std::lock_guard<std::mutex> lock(running_);
  const auto& f = device_->f();
  const auto count = static_cast<std::uint32_t>(dispatches_.size());
  make_queries();
  if (timed_ == nullptr) {
    timed_ = device_->begin(pool_, false);
    after_earlier_runs(timed_);
    f.CmdResetQueryPool(timed_, queries_, 0, count + 1);
    f.CmdWriteTimestamp(timed_, vk::kAtTopOfPipe, queries_, 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      record(timed_, i);
      f.CmdWriteTimestamp(timed_, vk::kAtCompute, queries_, i + 1);
      barrier(timed_, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtCompute,
              vk::kAccessShaderRead | vk::kAccessShaderWrite);
    }
    barrier(timed_, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtHost, vk::kAccessHostRead);
    device_->end(timed_);
  }
  put(inputs);
  device_->submit(timed_, timeout_ns);
  take(outputs);
  const auto ticks = timestamps(queries_, count + 1);
  std::vector<std::int64_t> durations;
  for (std::uint32_t i = 0; i < count; ++i) durations.push_back(device_->nanoseconds(ticks[i], ticks[i + 1]));
  return durations;
}

std::int64_t Plan::repeat(std::span<const In> inputs, std::size_t first, std::size_t last, std::uint32_t times,
                          std::uint64_t timeout_ns) {
  const std::lock_guard<std::mutex> lock(running_);
  if (first >= last || last > dispatches_.size()) throw std::out_of_range("the plan has no such steps.");
  make_queries();
  put(inputs);
  const auto& f = device_->f();
  const auto buffer = device_->begin(pool_, true);
  after_earlier_runs(buffer);
  f.CmdResetQueryPool(buffer, queries_, 0, 2);
  f.CmdWriteTimestamp(buffer, vk::kAtTopOfPipe, queries_, 0);
  Hazards hazards;
  for (std::uint32_t round = 0; round < times; ++round) {
    for (std::size_t i = first; i < last; ++i) {
      if (hazards.conflicts(dispatches_[i].bindings)) {
        barrier(buffer, vk::kAtCompute, vk::kAccessShaderWrite, vk::kAtCompute,
                vk::kAccessShaderRead | vk::kAccessShaderWrite);
      }
      record(buffer, i);
    }
  }
  f.CmdWriteTimestamp(buffer, vk::kAtCompute, queries_, 1);
  device_->end(buffer);
  device_->submit(buffer, timeout_ns);
  const auto ticks = timestamps(queries_, 2);
  device_->free(pool_, buffer);
  return device_->nanoseconds(ticks[0], ticks[1]);
}

void Plan::poison() {
  const std::lock_guard<std::mutex> lock(running_);
  const auto& arena = rooms_[at(Room::kArena)];
  const auto buffer = device_->begin(pool_, true);
  device_->f().CmdFillBuffer(buffer, arena.buffer, 0, arena.bytes / 4 * 4, kNotANumber);
  barrier(buffer, vk::kAtTransfer, vk::kAccessTransferWrite, vk::kAtCompute,
          vk::kAccessShaderRead | vk::kAccessShaderWrite);
  device_->end(buffer);
  device_->submit(buffer, kUploadTimeoutNs);
  device_->free(pool_, buffer);
}

}  // namespace powerlab::gpu

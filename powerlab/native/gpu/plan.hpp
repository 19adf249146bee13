// A network as dispatches, recorded once: a run is copying its inputs, one submit, and copying its outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.hpp"

namespace powerlab::gpu {

// Where a buffer of a dispatch lies.
enum class Room { kInputs = 0, kOutputs = 1, kArena = 2, kConstants = 3 };
constexpr int kRooms = 4;

struct Binding {
  Room room;
  std::uint64_t offset;
  std::uint64_t bytes;
  bool written;
};

struct Dispatch {
  std::string label;
  Shader shader;
  std::vector<Binding> bindings;
  std::string push;  // at most 128 bytes
  std::uint32_t groups[3];
  std::uint32_t queue;  // dispatches of several queues share nothing that one of them writes
};

class Plan {
 public:
  // bytes: of each room. synchronised: whether barriers keep dispatches in order; without them results may be wrong,
  // which shows that the validation layers see that.
  Plan(std::shared_ptr<Device> device, const std::uint64_t (&bytes)[kRooms], bool synchronised);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void upload(std::uint64_t offset, const void* data, std::uint64_t bytes);
  void download(Room room, std::uint64_t offset, void* data, std::uint64_t bytes);
  void add(Dispatch dispatch);
  // Dispatches from number ``last`` on begin when those of all queues are done. sections: the first dispatches of parts
  // of a run that are timed; of those before ``last``, on the first queue.
  void finish(std::size_t last, std::vector<std::size_t> sections);

  // Arrays lie one after another, each at its offset in the inputs or outputs.
  struct In {
    std::uint64_t offset;
    const void* data;
    std::uint64_t bytes;
  };
  struct Out {
    std::uint64_t offset;
    void* data;
    std::uint64_t bytes;
  };
  void run(std::span<const In> inputs, std::span<const Out> outputs, std::uint64_t timeout_ns);
  // Nanoseconds of each dispatch: each waits for the one before it, which a run asks for only where it must.
  std::vector<std::int64_t> run_timed(std::span<const In> inputs, std::span<const Out> outputs,
                                      std::uint64_t timeout_ns);
  // Nanoseconds of dispatches first to last - 1, all of them repeated.
  std::int64_t repeat(std::span<const In> inputs, std::size_t first, std::size_t last, std::uint32_t times,
                      std::uint64_t timeout_ns);
  void poison();
  // Nanoseconds of the sections of the latest run; none where there are no sections or the device counts no time.
  std::vector<std::int64_t> section_ns();

  const std::vector<Dispatch>& dispatches() const { return dispatches_; }
  std::size_t barriers() const { return barriers_; }

 private:
  void barrier(vk::CommandBuffer buffer, vk::Flags from, vk::Flags wrote, vk::Flags to, vk::Flags reads);
  void record(vk::CommandBuffer buffer, std::size_t index);
  vk::CommandBuffer recorded(std::size_t first, std::size_t last, std::uint32_t queue);
  void after_earlier_runs(vk::CommandBuffer buffer);  // lets what they wrote be seen
  void mark(vk::CommandBuffer buffer, std::size_t dispatch);
  Piece staging(std::uint64_t bytes);
  void put(std::span<const In> inputs);
  void take(std::span<const Out> outputs);
  void make_descriptors();
  void make_queries();
  std::vector<std::uint64_t> timestamps(vk::QueryPool queries, std::uint32_t count);

  std::shared_ptr<Device> device_;
  bool synchronised_;
  Piece rooms_[kRooms];
  std::vector<Dispatch> dispatches_;
  std::vector<vk::Pipeline> pipelines_;
  std::vector<vk::DescriptorSet> sets_;
  vk::DescriptorPool descriptors_ = nullptr;
  vk::QueryPool queries_ = nullptr;
  vk::QueryPool marks_ = nullptr;  // where sections begin, and the end
  vk::CommandPool pool_ = nullptr;
  std::vector<vk::CommandBuffer> commands_;  // one for each queue
  vk::CommandBuffer behind_ = nullptr;       // what waits for all queues, where there are several
  std::vector<std::size_t> sections_;
  bool keeps_ = false;  // whether runs read what earlier ones wrote
  vk::CommandBuffer timed_ = nullptr;
  std::size_t barriers_ = 0;
  std::mutex running_;
};

}  // namespace powerlab::gpu

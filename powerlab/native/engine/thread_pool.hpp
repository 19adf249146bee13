// The engine's own threads: as many as it was given, the caller being one of them, and no more.
//
// A run wakes the workers once; between the steps of a plan all threads meet at a barrier. Waiting spins for a bounded
// time, since the next step is usually microseconds away, and then sleeps in the kernel, since it may not be. Workers
// inherit the affinity of the thread that made the pool and block all signals, so that Ctrl-C reaches Python.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace powerlab::engine {

class ThreadPool {
 public:
  // Starts threads - 1 workers. Throws std::invalid_argument for threads < 1, std::runtime_error where the system
  // refuses a thread.
  ThreadPool(int threads, std::int64_t spin_ns);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  using Task = void (*)(void* context, int thread);

  // Calls task(context, t) for t = 0 .. threads - 1 at the same time, t = 0 on the caller, and returns when all are
  // done. One run at a time. Throws std::runtime_error in a forked child, where the workers do not exist.
  void run(Task task, void* context);

  // Called by every thread inside a task: returns when all have called it.
  void barrier();

 private:
  void work(int thread);
  void stop();
  void wait_while_equal(std::atomic<std::uint32_t>& word, std::uint32_t old);

  const int threads_;
  const std::int64_t spin_ns_;
  const pid_t owner_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  bool stopping_ = false;
  // Each on a cache line of its own: the threads spin on one while they count on another.
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  std::vector<std::thread> workers_;
};

}  // namespace powerlab::engine

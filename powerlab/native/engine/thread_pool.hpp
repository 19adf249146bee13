// The engine's own threads: as many as it was given, the caller being one of them, and no more.
//
// A run is a number of phases, each cut into as many shares as there are threads. Threads claim shares, their own
// first: a thread that the system does not let run at the moment delays nobody, because another takes its share. A
// phase begins when all shares of the one before are done, whoever did them, and a thread that comes late goes on with
// the phase that is due. A thread that is not run in the middle of a share is lent the processor of one that waits for
// it. Waiting spins for a bounded time, since the next phase is usually microseconds away, and then sleeps in the
// kernel, since it may not be. Workers inherit the affinity of the thread that made the pool and block all signals, so
// that Ctrl-C reaches Python.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
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

  // Held by whoever runs, where several share the pool.
  std::mutex& turn() { return turn_; }

  // Computes a share, 0 .. threads - 1, of a phase, on any thread; throws nothing.
  using Share = void (*)(void* context, std::int64_t phase, int share);

  // Told on the caller's thread when a phase is over.
  using Finished = void (*)(void* context, std::int64_t phase);

  // Computes every share of the phases 0 .. phases - 1, phase by phase, and returns when all are done. One run at a
  // time. Throws std::runtime_error in a forked child, where the workers do not exist.
  void run(Share share, void* context, std::int64_t phases, Finished finished = nullptr);

 private:
  // What a run does. `first` is the number of its first phase among all phases of the pool, modulo 2^32.
  struct Job {
    Share share;
    void* context;
    std::int64_t phases;
    std::uint32_t first;
  };
  // The state of the shares of one number.
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> next{0};         // the first phase in which the share is not claimed yet
    std::atomic<std::int32_t> holder{kNobody};  // the thread that computes it
    std::atomic<std::int32_t> lent{kNobody};    // the processor that its holder was moved to, see lend_processor
  };
  static constexpr std::int32_t kNobody = -1;
  struct Member {
    std::atomic<pid_t> id{0};
    std::atomic<clockid_t> clock{0};  // of the processor time it has used
  };

  void work(int thread);
  void stop();
  void publish(const Job& job);
  bool read_job(std::uint32_t generation, Job& job) const;
  void take_part(const Job& job, int thread, Finished finished);
  void compute(const Job& job, std::int64_t phase, std::uint32_t number, int share, int thread);
  void enlist(int thread);
  bool spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old, std::int64_t spin_ns) const;
  void wait_while_equal(std::atomic<std::uint32_t>& word, std::uint32_t old);
  void sleep_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old) const;
  void lend_processor(std::uint32_t number);

  const int threads_;
  const std::int64_t spin_ns_;
  const pid_t owner_;
  // The job, read by workers that may come so late that the next is being written: an odd generation says that.
  std::atomic<Share> share_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::int64_t> phases_{0};
  std::atomic<std::uint32_t> first_{0};
  std::atomic<bool> stopping_{false};
  // Each on a cache line of its own: the threads spin on one while they count on another.
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};       // shares of the phase in progress
  alignas(64) std::atomic<std::uint32_t> completed_{0};  // phases, of all runs
  const std::unique_ptr<Claim[]> claims_;                // by share
  const std::unique_ptr<Member[]> members_;              // by thread
  std::mutex turn_;
  std::vector<std::thread> workers_;
};

}  // namespace powerlab::engine

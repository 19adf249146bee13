#include "thread_pool.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>

namespace powerlab::engine {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Blocks all signals while it lives: threads started meanwhile inherit that.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

ThreadPool::ThreadPool(int threads, std::int64_t spin_ns) : threads_(threads), spin_ns_(spin_ns), owner_(getpid()) {
  if (threads < 1) throw std::invalid_argument("an engine needs at least one thread.");
  const SignalsBlocked blocked;
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error&) {
    stop();
    throw std::runtime_error("the system refused to start " + std::to_string(threads) +
                             " engine threads; ask for fewer.");
  }
}

ThreadPool::~ThreadPool() {
  if (getpid() == owner_) {
    stop();
  } else {  // a forked child: there is nobody to join
    for (std::thread& worker : workers_) worker.detach();
  }
}

void ThreadPool::stop() {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Task task, void* context) {
  if (getpid() != owner_) {
    throw std::runtime_error("this Session was made before the process forked; make it in the process that runs it.");
  }
  task_ = task;
  context_ = context;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  task(context, 0);
  barrier();
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while_equal(generation_, seen);
    ++seen;
    if (stopping_) return;
    task_(context_, thread);
    barrier();
  }
}

void ThreadPool::barrier() {
  if (threads_ == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(threads_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
  } else {
    wait_while_equal(phase_, phase);
  }
}

void ThreadPool::wait_while_equal(std::atomic<std::uint32_t>& word, std::uint32_t old) {
  if (word.load(std::memory_order_acquire) != old) return;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(spin_ns_);
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

}  // namespace powerlab::engine

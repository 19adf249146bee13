#include "thread_pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>

#include "signals_blocked.hpp"

namespace powerlab::engine {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr std::int64_t kLookNs = 30'000;  // how long a thread is looked at to see whether it runs

std::int64_t used_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// Moves the calling thread to another of the processors it may use.
void move_from(int processor) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::int64_t spin_ns)
    : threads_(threads),
      spin_ns_(spin_ns),
      owner_(getpid()),
      claims_(std::make_unique<Claim[]>(static_cast<std::size_t>(std::max(threads, 0)))),
      members_(std::make_unique<Member[]>(static_cast<std::size_t>(std::max(threads, 0)))) {
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
  generation_.fetch_add(2, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Share share, void* context, std::int64_t phases, Finished finished) {
  if (getpid() != owner_) {
    throw std::runtime_error("this Session was made before the process forked; make it in the process that runs it.");
  }
  const Job job{share, context, phases, completed_.load(std::memory_order_relaxed)};
  if (threads_ > 1) {
    enlist(0);
    publish(job);
  }
  take_part(job, 0, finished);
}

void ThreadPool::publish(const Job& job) {
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  generation_.store(generation + 1, std::memory_order_relaxed);
  share_.store(job.share, std::memory_order_release);
  context_.store(job.context, std::memory_order_release);
  phases_.store(job.phases, std::memory_order_release);
  first_.store(job.first, std::memory_order_release);
  generation_.store(generation + 2, std::memory_order_release);
  generation_.notify_all();
}

// Returns whether `job` is now the whole job of that generation; a later one may have begun. A worker that reads what
// the next run writes reads its odd generation, too, or a later one.
bool ThreadPool::read_job(std::uint32_t generation, Job& job) const {
  job = {share_.load(std::memory_order_acquire), context_.load(std::memory_order_acquire),
         phases_.load(std::memory_order_acquire), first_.load(std::memory_order_acquire)};
  return generation % 2 == 0 && generation_.load(std::memory_order_relaxed) == generation;
}

void ThreadPool::work(int thread) {
  enlist(thread);
  std::uint32_t seen = 0;
  for (;;) {
    wait_while_equal(generation_, seen);
    Job job;
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    if (!read_job(generation, job)) continue;
    seen = generation;
    take_part(job, thread, nullptr);
  }
}

// Whoever claims a share knows that its phase is in progress, so that what the job points to is there: the run cannot
// end before that share is done. A thread that comes late finds all shares claimed and touches nothing.
void ThreadPool::take_part(const Job& job, int thread, Finished finished) {
  if (threads_ == 1) {
    for (std::int64_t phase = 0; phase < job.phases; ++phase) {
      job.share(job.context, phase, 0);
      if (finished) finished(job.context, phase);
    }
    return;
  }
  for (std::int64_t phase = 0; phase < job.phases; ++phase) {
    const auto number = static_cast<std::uint32_t>(job.first + static_cast<std::uint64_t>(phase));
    if (completed_.load(std::memory_order_acquire) == number) {
      for (int i = 0; i < threads_; ++i) {
        const int share = thread + i < threads_ ? thread + i : thread + i - threads_;
        std::uint32_t unclaimed = number;
        if (claims_[static_cast<std::size_t>(share)].next.compare_exchange_strong(
                unclaimed, number + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) {
          compute(job, phase, number, share, thread);
        }
      }
      if (!spin_while_equal(completed_, number, spin_ns_)) {
        lend_processor(number);
        sleep_while_equal(completed_, number);
      }
    }
    if (finished) finished(job.context, phase);
  }
}

void ThreadPool::compute(const Job& job, std::int64_t phase, std::uint32_t number, int share, int thread) {
  Claim& claim = claims_[static_cast<std::size_t>(share)];
  claim.holder.store(thread, std::memory_order_release);
  job.share(job.context, phase, share);
  claim.holder.store(kNobody, std::memory_order_relaxed);
  const std::int32_t lent = claim.lent.exchange(kNobody, std::memory_order_relaxed);
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(threads_)) {
    done_.store(0, std::memory_order_relaxed);
    completed_.store(number + 1, std::memory_order_release);
    completed_.notify_all();
  }
  if (lent != kNobody) move_from(lent);
}

void ThreadPool::enlist(int thread) {
  Member& member = members_[static_cast<std::size_t>(thread)];
  clockid_t clock;
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  member.clock.store(clock, std::memory_order_relaxed);
  member.id.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
}

// A thread that other programs keep from running in the middle of a share would hold up all others for a time slice or
// several, which is a hundred layers. The caller, who has nothing to do, gives it its own processor and goes to sleep.
void ThreadPool::lend_processor(std::uint32_t number) {
  for (int share = 0; share < threads_; ++share) {
    Claim& claim = claims_[static_cast<std::size_t>(share)];
    const std::int32_t holder = claim.holder.load(std::memory_order_acquire);
    if (holder == kNobody) continue;
    const Member& member = members_[static_cast<std::size_t>(holder)];
    const pid_t id = member.id.load(std::memory_order_relaxed);
    const clockid_t clock = member.clock.load(std::memory_order_relaxed);
    if (id == 0) continue;
    const std::int64_t before_ns = used_ns(clock);
    if (spin_while_equal(completed_, number, kLookNs)) return;
    if (used_ns(clock) != before_ns) continue;  // it runs
    const int processor = sched_getcpu();
    cpu_set_t all, here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(processor), &here);
    if (sched_getaffinity(id, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
    claim.lent.store(processor, std::memory_order_relaxed);
    if (sched_setaffinity(id, sizeof here, &here) == 0) sched_setaffinity(id, sizeof all, &all);
    return;
  }
}

bool ThreadPool::spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                                  std::int64_t spin_ns) const {
  if (word.load(std::memory_order_acquire) != old) return true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(spin_ns);
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != old) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

void ThreadPool::wait_while_equal(std::atomic<std::uint32_t>& word, std::uint32_t old) {
  if (!spin_while_equal(word, old, spin_ns_)) sleep_while_equal(word, old);
}

void ThreadPool::sleep_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old) const {
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

}  // namespace powerlab::engine

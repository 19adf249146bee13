// The thread pool by itself: who is called, how often, after whom, and how it ends.
#include "thread_pool.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr std::int64_t kSpins[] = {0, 50'000};

// What the tasks below work on; each slot is one thread's own, so that a slot says how often that thread was called.
struct Work {
  ThreadPool* pool;
  std::vector<int> calls, seen;
  std::vector<std::thread::id> ids;
  std::atomic<int> unblocked{0};

  explicit Work(ThreadPool& p)
      : pool(&p), calls(static_cast<std::size_t>(p.threads())), seen(calls.size()), ids(calls.size()) {}
};

Work& work_of(void* context) { return *static_cast<Work*>(context); }

void count_call(void* context, int thread) { ++work_of(context).calls[static_cast<std::size_t>(thread)]; }

void check_everyone_is_called_once(int threads, std::int64_t spin_ns, Report& report) {
  ThreadPool pool(threads, spin_ns);
  Work work(pool);
  constexpr int kRuns = 60;
  for (int run = 0; run < kRuns; ++run) pool.run(&count_call, &work);
  int wrong = 0;
  for (const int calls : work.calls) wrong += calls != kRuns;
  report.check("thread pool of " + std::to_string(threads) + ", calls", wrong, 0);
}

// Each thread adds what all threads held in the step before: one that runs ahead or behind changes the sums.
void add_neighbours(void* context, int thread) {
  Work& work = work_of(context);
  const auto own = static_cast<std::size_t>(thread);
  for (int step = 0; step < 8; ++step) {
    int sum = 0;
    for (const int value : work.calls) sum += value;
    work.pool->barrier();
    work.calls[own] = sum + thread;
    work.pool->barrier();
    work.seen[own] = sum;
  }
}

void check_barriers_order_writes(int threads, std::int64_t spin_ns, Report& report) {
  ThreadPool pool(threads, spin_ns);
  for (int run = 0; run < 30; ++run) {
    Work work(pool);
    pool.run(&add_neighbours, &work);
    int sum = 0, expected = 0;
    for (int step = 0; step < 8; ++step) {
      expected = sum;
      sum = threads * expected + threads * (threads - 1) / 2;
    }
    int wrong = 0;
    for (int thread = 0; thread < threads; ++thread) {
      const auto i = static_cast<std::size_t>(thread);
      wrong += work.seen[i] != expected || work.calls[i] != expected + thread;
    }
    report.check("thread pool of " + std::to_string(threads) + ", barriers", wrong, 0);
  }
}

void check_the_caller_is_thread_0(Report& report) {
  ThreadPool pool(4, 0);
  Work work(pool);
  for (int run = 0; run < 5; ++run) {
    const auto before = work.ids;
    pool.run([](void* c, int thread) { work_of(c).ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); },
             &work);
    report.check("thread pool, caller", work.ids[0] == std::this_thread::get_id() ? 0 : 1, 0);
    int doubles = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < i; ++j) doubles += work.ids[i] == work.ids[j];
    }
    report.check("thread pool, threads of its own", doubles, 0);
    report.check("thread pool, the same threads again", run > 0 && before != work.ids, 0);
  }
}

std::int64_t process_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// A pool that has nothing to do uses no processor: after its spin every worker sleeps.
void check_idle(Report& report) {
  for (const std::int64_t spin_ns : kSpins) {
    ThreadPool pool(4, spin_ns);
    Work work(pool);
    pool.run(&count_call, &work);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t before_ns = process_time_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    report.check("thread pool, ms worked while idle", static_cast<double>(process_time_ns() - before_ns) / 1e6, 20);
    pool.run(&count_call, &work);
    report.check("thread pool, woken", work.calls == std::vector<int>{2, 2, 2, 2} ? 0 : 1, 0);
  }
}

void check_signals(Report& report) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ThreadPool pool(3, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  Work work(pool);
  pool.run(
      [](void* context, int thread) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
          work_of(context).unblocked += thread > 0 && sigismember(&mask, signal) != 1;
        }
      },
      &work);
  report.check("thread pool, signals reach its threads", work.unblocked.load(), 0);
  int changed = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    changed += sigismember(&before, signal) != sigismember(&after, signal);
  report.check("thread pool, the caller's signals", changed, 0);
}

void check_ends(Report& report) {
  for (const std::int64_t spin_ns : kSpins) {
    for (const int threads : {1, 2, 7}) {
      for (int round = 0; round < 20; ++round) ThreadPool unused(threads, spin_ns);  // ended before it ever ran
      ThreadPool pool(threads, spin_ns);
      Work work(pool);
      pool.run(&count_call, &work);
    }
  }
  std::array<std::unique_ptr<ThreadPool>, 5> pools;
  for (auto& pool : pools) pool = std::make_unique<ThreadPool>(3, 0);
  int wrong = 0;
  for (int round = 0; round < 10; ++round) {
    for (auto& pool : pools) {
      Work work(*pool);
      pool->run(&count_call, &work);
      for (const int calls : work.calls) wrong += calls != 1;
    }
    pools[static_cast<std::size_t>(round) % pools.size()] = std::make_unique<ThreadPool>(1 + round % 4, 0);
  }
  report.check("thread pools side by side", wrong, 0);
}

void check_refusals(Report& report) {
  for (const int threads : {0, -1, -1000}) {
    bool refused = false;
    try {
      const ThreadPool pool(threads, 0);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    report.check("thread pool of " + std::to_string(threads), refused ? 0 : 1, 0);
  }
}

// A forked child has no workers: running must fail there and not wait for them, and ending must not join them.
int run_in_child(std::unique_ptr<ThreadPool> pool) {
  Work work(*pool);
  try {
    pool->run(&count_call, &work);
  } catch (const std::runtime_error& error) {
    pool.reset();
    return std::string(error.what()).find("forked") != std::string::npos ? 0 : 1;
  }
  return 2;
}

void check_fork(Report& report) {
  auto pool = std::make_unique<ThreadPool>(3, 0);
  Work work(*pool);
  pool->run(&count_call, &work);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs is ended by the signal, which counts as wrong
    _exit(run_in_child(std::move(pool)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  report.check("thread pool in a forked child", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1, 0);
  pool->run(&count_call, &work);
  report.check("thread pool of the parent", work.calls == std::vector<int>{2, 2, 2} ? 0 : 1, 0);
}

}  // namespace

void check_thread_pool(Report& report) {
  for (const std::int64_t spin_ns : kSpins) {
    for (const int threads : {1, 2, 3, 5, 8, 13}) {
      check_everyone_is_called_once(threads, spin_ns, report);
      if (threads <= 5) check_barriers_order_writes(threads, spin_ns, report);
    }
  }
  check_the_caller_is_thread_0(report);
  check_idle(report);
  check_signals(report);
  check_ends(report);
  check_refusals(report);
  check_fork(report);
}

}  // namespace powerlab::engine::test

// The thread pool by itself: which shares are done, how often, after which, and how it ends.
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
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr std::int64_t kSpins[] = {0, 50'000};

// What the shares below work on; each slot belongs to the share of that number.
struct Work {
  std::vector<int> calls, seen;
  std::vector<std::thread::id> ids;
  std::atomic<int> unblocked{0};

  explicit Work(const ThreadPool& pool)
      : calls(static_cast<std::size_t>(pool.threads())), seen(calls.size()), ids(calls.size()) {}
};

Work& work_of(void* context) { return *static_cast<Work*>(context); }

void count_call(void* context, std::int64_t, int share) { ++work_of(context).calls[static_cast<std::size_t>(share)]; }

void check_every_share_is_done_once(int threads, std::int64_t spin_ns, Report& report) {
  ThreadPool pool(threads, spin_ns);
  Work work(pool);
  constexpr int kRuns = 60, kPhases = 7;
  for (int run = 0; run < kRuns; ++run) pool.run(&count_call, &work, run % 2 ? kPhases : 1);
  pool.run(&count_call, &work, 0);
  int wrong = 0;
  for (const int calls : work.calls) wrong += calls != kRuns / 2 * (1 + kPhases);
  report.check("thread pool of " + std::to_string(threads) + ", shares", wrong, 0);
}

// In even phases each share sums up what all held before, in odd ones it keeps its sum: one that runs ahead or behind
// changes the sums.
void add_neighbours(void* context, std::int64_t phase, int share) {
  Work& work = work_of(context);
  const auto own = static_cast<std::size_t>(share);
  if (phase % 2 == 0) {
    work.seen[own] = 0;
    for (const int value : work.calls) work.seen[own] += value;
  } else {
    work.calls[own] = work.seen[own] + share;
  }
}

void check_phases_follow_each_other(int threads, std::int64_t spin_ns, Report& report) {
  ThreadPool pool(threads, spin_ns);
  for (int run = 0; run < 30; ++run) {
    Work work(pool);
    pool.run(&add_neighbours, &work, 16);
    int sum = 0, expected = 0;
    for (int step = 0; step < 8; ++step) {
      expected = sum;
      sum = threads * expected + threads * (threads - 1) / 2;
    }
    int wrong = 0;
    for (int share = 0; share < threads; ++share) {
      const auto i = static_cast<std::size_t>(share);
      wrong += work.seen[i] != expected || work.calls[i] != expected + share;
    }
    report.check("thread pool of " + std::to_string(threads) + ", phases", wrong, 0);
  }
}

void note_thread(void* context, std::int64_t, int share) {
  work_of(context).ids[static_cast<std::size_t>(share)] = std::this_thread::get_id();
}

void check_its_threads(Report& report) {
  ThreadPool alone(1, 0), pool(4, 0);
  Work one(alone);
  alone.run(&note_thread, &one, 1);
  report.check("thread pool of 1, caller", one.ids[0] == std::this_thread::get_id() ? 0 : 1, 0);
  std::set<std::thread::id> all;
  // On a busy machine others may claim all shares of many runs before the caller's turn comes.
  for (int run = 0; run < 50 || (run < 100000 && all.count(std::this_thread::get_id()) == 0); ++run) {
    Work work(pool);
    pool.run(&note_thread, &work, 3);
    all.insert(work.ids.begin(), work.ids.end());
  }
  report.check("thread pool, the caller takes part", all.count(std::this_thread::get_id()) == 1 ? 0 : 1, 0);
  report.check("thread pool, threads of its own", all.size() <= 4 ? 0 : 1, 0);
}

void check_the_end_of_phases_is_told(Report& report) {
  for (const int threads : {1, 3}) {
    struct Told {
      std::vector<std::int64_t> phases;
      std::atomic<int> shares{0};
      std::thread::id thread;
      int wrong = 0;
    } told;
    ThreadPool pool(threads, 0);
    pool.run([](void* context, std::int64_t, int) { ++static_cast<Told*>(context)->shares; }, &told, 5,
             [](void* context, std::int64_t phase) {
               Told& all = *static_cast<Told*>(context);
               all.phases.push_back(phase);
               all.thread = std::this_thread::get_id();
             });
    report.check("thread pool, ends of phases",
                 told.phases == std::vector<std::int64_t>{0, 1, 2, 3, 4} && told.shares == 5 * threads ? 0 : 1, 0);
    report.check("thread pool, who is told", told.thread == std::this_thread::get_id() ? 0 : 1, 0);
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
    pool.run(&count_call, &work, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t before_ns = process_time_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    report.check("thread pool, ms worked while idle", static_cast<double>(process_time_ns() - before_ns) / 1e6, 20);
    pool.run(&count_call, &work, 1);
    report.check("thread pool, woken", work.calls == std::vector<int>{2, 2, 2, 2} ? 0 : 1, 0);
  }
}

void check_signals(Report& report) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ThreadPool pool(3, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  Work work(pool);
  work.ids[0] = std::this_thread::get_id();
  pool.run(
      [](void* context, std::int64_t, int) {
        Work& all = work_of(context);
        if (std::this_thread::get_id() == all.ids[0]) return;
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) all.unblocked += sigismember(&mask, signal) != 1;
      },
      &work, 200);
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
      pool.run(&count_call, &work, 1);
    }
  }
  std::array<std::unique_ptr<ThreadPool>, 5> pools;
  for (auto& pool : pools) pool = std::make_unique<ThreadPool>(3, 0);
  int wrong = 0;
  for (int round = 0; round < 10; ++round) {
    for (auto& pool : pools) {
      Work work(*pool);
      pool->run(&count_call, &work, 1);
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
    pool->run(&count_call, &work, 1);
  } catch (const std::runtime_error& error) {
    pool.reset();
    return std::string(error.what()).find("forked") != std::string::npos ? 0 : 1;
  }
  return 2;
}

void check_fork(Report& report) {
  auto pool = std::make_unique<ThreadPool>(3, 0);
  Work work(*pool);
  pool->run(&count_call, &work, 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs is ended by the signal, which counts as wrong
    _exit(run_in_child(std::move(pool)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  report.check("thread pool in a forked child", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1, 0);
  pool->run(&count_call, &work, 1);
  report.check("thread pool of the parent", work.calls == std::vector<int>{2, 2, 2} ? 0 : 1, 0);
}

}  // namespace

void check_thread_pool(Report& report) {
  for (const std::int64_t spin_ns : kSpins) {
    for (const int threads : {1, 2, 3, 5, 8, 13}) {
      check_every_share_is_done_once(threads, spin_ns, report);
      if (threads <= 5) check_phases_follow_each_other(threads, spin_ns, report);
    }
  }
  check_its_threads(report);
  check_the_end_of_phases_is_told(report);
  check_idle(report);
  check_signals(report);
  check_ends(report);
  check_refusals(report);
  check_fork(report);
}

}  // namespace powerlab::engine::test

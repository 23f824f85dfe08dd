#include "executor/launch/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "executor/launch/private_folder.hpp"
#include "executor/launch/secret.hpp"
#include "executor/launch/signals.hpp"
#include "executor/launch/socket.hpp"

namespace orrery::executor {

namespace {

/// A folder that is removed at the end of the run.
class RunFolder {
 public:
  RunFolder() {
    std::string name = private_folder(environment()) + "/run-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw RunFailure{Exit::local_failure,
                       fmt::format("{}: cannot be created: {}", name, std::strerror(errno))};
    }
    path_ = name;
  }
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The children, from the first fork to the last wait.
class ChildProcesses {
 public:
  explicit ChildProcesses(const SpawnSettings& settings) : settings_{settings} {
    sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&wanted, each);
    ::sigprocmask(SIG_BLOCK, &wanted, &before_);
    signals_ = wanted;
  }
  ~ChildProcesses() {
    for (const pid_t child : children_) {
      if (child > 0) ::kill(child, SIGKILL);
    }
    for (const pid_t child : children_) {
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  void start() {
    const std::string job = "local-" + random_name();
    for (int rank = 0; rank < settings_.ranks; ++rank) {
      Environment all = environment();
      all["ORRERY_RANK"] = std::to_string(rank);
      all["ORRERY_RANKS"] = std::to_string(settings_.ranks);
      all["ORRERY_JOB"] = job;
      all["ORRERY_STORE"] = folder_.path() + "/store";
      all["OPENBLAS_NUM_THREADS"] = "1";
      children_.push_back(start_one(rank, all));
    }
  }

  int wait() {
    std::size_t left = children_.size();
    while (left > 0) {
      const timespec tick{0, 100'000'000};
      const int signal = ::sigtimedwait(&signals_, nullptr, &tick);
      if (signal == SIGINT || signal == SIGTERM || signal == SIGUSR1) pass_on(signal);
      left -= collect();
      if (give_up_at_ && Clock::now() >= *give_up_at_) kill_rest();
    }
    if (own_fault_ != 0) return own_fault_;
    return others_;
  }

 private:
  pid_t start_one(int rank, const Environment& all) {
    std::vector<std::string> words, variables;
    words.push_back(fmt::format("orrery rank {}", rank));
    words.insert(words.end(), settings_.arguments.begin(), settings_.arguments.end());
    for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
    std::vector<char*> argv, envp;
    for (std::string& each : words) argv.push_back(each.data());
    for (std::string& each : variables) envp.push_back(each.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
      throw RunFailure{Exit::local_failure,
                       fmt::format("rank {} cannot be started: {}", rank, std::strerror(errno))};
    }
    if (child > 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::raise(SIGKILL);  // the parent ended before the line above
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    if (rank > 0) ::dup2(nothing, STDOUT_FILENO);
    ::execve("/proc/self/exe", argv.data(), envp.data());
    ::raise(SIGKILL);  // nothing of the parent may run here: no destructor, no handler
    return 0;
  }

  void pass_on(int signal) {
    for (const pid_t child : children_) {
      if (child > 0) ::kill(child, signal);
    }
    if (signal == SIGUSR1) return;
    const auto now = Clock::now();
    if (!settings_.saves || (asked_at_ && now - *asked_at_ > same_request)) last_seconds();
    if (!asked_at_) asked_at_ = now;
  }

  std::size_t collect() {
    std::size_t ended = 0;
    int status = 0;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      if (children_[rank] <= 0 || ::waitpid(children_[rank], &status, WNOHANG) <= 0) continue;
      children_[rank] = 0;
      ++ended;
      note(static_cast<int>(rank), status);
    }
    return ended;
  }

  void note(int rank, int status) {
    constexpr int lost_peer = static_cast<int>(Exit::peer_failed);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : lost_peer;
    if (code == 0) return;
    last_seconds();
    if (code != lost_peer && own_fault_ == 0) own_fault_ = code;
    if (code == lost_peer) others_ = lost_peer;
    if (!WIFSIGNALED(status) || killed_by_us_ || !settings_.say) return;
    settings_.say(fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
                              ::strsignal(WTERMSIG(status))));
  }

  void last_seconds() {
    if (!give_up_at_) give_up_at_ = Clock::now() + settings_.patience;
  }

  void kill_rest() {
    killed_by_us_ = true;
    for (const pid_t child : children_) {
      if (child > 0) ::kill(child, SIGKILL);
    }
  }

  const SpawnSettings& settings_;
  RunFolder folder_;
  sigset_t signals_{}, before_{};
  std::vector<pid_t> children_;  // by rank; 0 once it has ended
  std::optional<Deadline> give_up_at_, asked_at_;
  int own_fault_ = 0, others_ = 0;
  bool killed_by_us_ = false;
};

}  // namespace

std::vector<std::string> own_arguments() {
  std::ifstream file{"/proc/self/cmdline", std::ios::binary};
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

int spawn_ranks(const SpawnSettings& settings) {
  ChildProcesses children{settings};
  children.start();
  return children.wait();
}

}  // namespace orrery::executor

// Stands in for the daemons of a local cluster: does what the file FAKE_DAEMON_DIR/TYPE-INDEX says
// (in its nth life TYPE-INDEX.n, if there is one), a command a line:
//   say TEXT        prints a line on stderr
//   touch FILE      creates FAKE_DAEMON_DIR/FILE
//   write FILE TEXT writes TEXT and a newline to a file of the run directory
//   await FILE      waits until FAKE_DAEMON_DIR/FILE exists
//   need FILE       says so when FAKE_DAEMON_DIR/FILE does not exist
//   term CODE       waits for SIGTERM, then goes on with the next line, or exits with CODE
//   wait            waits forever
//   kill SIGNAL     sends a signal to itself
//   exit CODE
// Its process id goes to FAKE_DAEMON_DIR/TYPE-INDEX.pid first, the environment and arguments to
// .environ and .args, the number of its life to .lives.

#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

// Written beside and renamed, so that who sees the file sees all of it.
void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

void AwaitFile(const std::string& directory, const std::string& name) {
  const int watch = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(watch, directory.c_str(), IN_CREATE | IN_MOVED_TO);
  char events[4096];
  while (!std::filesystem::exists(directory + "/" + name)) {
    if (read(watch, events, sizeof(events)) <= 0) break;
  }
  close(watch);
}

std::string RunDirectory(int argc, char** argv) {
  constexpr char kFlag[] = "--run_dir=";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(kFlag)) return argument.substr(sizeof(kFlag) - 1);
  }
  return ".";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = std::getenv("FAKE_DAEMON_DIR");
  const nlohmann::json config = nlohmann::json::parse(std::getenv("TF_CONFIG"));
  const std::string task = config["task"]["type"].get<std::string>() + "-" +
                           std::to_string(config["task"]["index"].get<int>());
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);  // `term` collects it, also when it comes early

  std::string variables, arguments;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables += std::string(*variable) + "\n";
  }
  for (int i = 1; i < argc; ++i) arguments += std::string(argv[i]) + "\n";
  WriteFile(directory + "/" + task + ".environ", variables);
  WriteFile(directory + "/" + task + ".args", arguments);
  WriteFile(directory + "/" + task + ".pid", std::to_string(getpid()));

  int life = 0;
  std::ifstream(directory + "/" + task + ".lives") >> life;
  ++life;
  WriteFile(directory + "/" + task + ".lives", std::to_string(life));

  const std::string of_this_life = directory + "/" + task + "." + std::to_string(life);
  std::ifstream commands(std::filesystem::exists(of_this_life) ? of_this_life
                                                               : directory + "/" + task);
  std::string command, rest;
  while (commands >> command && std::getline(commands, rest)) {
    rest.erase(0, rest.empty() ? 0 : 1);
    if (command == "say") std::cerr << rest << std::endl;
    if (command == "touch") WriteFile(directory + "/" + rest, "");
    if (command == "write") {
      const size_t space = rest.find(' ');
      std::ofstream(RunDirectory(argc, argv) + "/" + rest.substr(0, space), std::ios::app)
          << rest.substr(space + 1) << "\n";
    }
    if (command == "await") AwaitFile(directory, rest);
    if (command == "need" && !std::filesystem::exists(directory + "/" + rest)) {
      std::cerr << rest << " is missing" << std::endl;
    }
    if (command == "term") {
      int signal = 0;
      sigwait(&term, &signal);
      if (!rest.empty()) return std::atoi(rest.c_str());
    }
    if (command == "wait") {
      while (true) pause();
    }
    if (command == "kill") raise(std::atoi(rest.c_str()));
    if (command == "exit") return std::atoi(rest.c_str());
  }
  return 0;
}

// Implements the program with which `rdma-rpc perf` measures. Like perftest's programs, this program is one
// side of one test, without the memory, threads and event loop of Node. The command (cli/perf/program.ts)
// starts this program, sends instructions line by line, and reads the results. The program ends when its
// stdin is closed.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "perf/program/side.h"

int main() {
  if (::isatty(STDIN_FILENO) == 1) {
    std::fputs("This program is a part of `rdma-rpc perf`: use that command.\n", stderr);
    return 2;
  }
  // The program ignores SIGPIPE, because it learns of the end of the command from the end of stdin.
  std::signal(SIGPIPE, SIG_IGN);
  rdma_rpc::perf::Output output(STDOUT_FILENO);
  rdma_rpc::perf::Side side(&output);
  char* line = nullptr;
  std::size_t room = 0;
  for (ssize_t length = 0; (length = ::getline(&line, &room, stdin)) > 0;) {
    std::string_view text(line, static_cast<std::size_t>(length));
    if (text.back() == '\n') text.remove_suffix(1);
    side.take(rdma_rpc::perf::Words(text));
  }
  std::free(line);
}

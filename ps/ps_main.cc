// shoal-ps: holds and updates the variables of one ps of the cluster spec.
#include "common/daemon/daemon.h"
#include "ps/ps_process.h"

int main(int argc, char** argv) {
  shoal::Daemon daemon(
      "shoal-ps", shoal::TaskType::kPs,
      "Holds a share of the variables and applies the gradients that workers push.");
  daemon.SetExamples(
      "Example, as `shoal train` starts it:\n"
      "  TF_CONFIG='{\"cluster\": {\"chief\": [\"a:2222\"], \"ps\": [\"b:2222\"], \"worker\": "
      "[\"c:2222\"]},\n"
      "              \"task\": {\"type\": \"ps\", \"index\": 0}}' shoal-ps\n"
      "It waits for the coordinator, needs no files of its own, and ends with the job.");
  double drain_timeout = 20;
  daemon.settings().AddNumber("drain_timeout", &drain_timeout, 0, 1e9,
                              "Seconds after SIGTERM within which the coordinator may have a "
                              "checkpoint written first");
  return daemon.Run(argc, argv,
                    [&] { return shoal::RunPs(daemon, shoal::FromSeconds(drain_timeout)); });
}

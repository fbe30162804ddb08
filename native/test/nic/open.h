// Contains helpers of the tests in this folder. The helpers open NICs and connect queue pairs. This code runs
// on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "fabric/verbs_loader.h"
#include "nic/device/nic.h"

namespace rdma_rpc::nic {

/// Opens a NIC by its name, or returns null with the reason in `error`.
inline std::unique_ptr<fabric::Device> try_open(const Nic& nic, std::string* error,
                                                fabric::VerbsOptions options = {}) {
  options.device = nic.profile.name;
  return fabric::open_verbs_device(options, error);
}

inline std::unique_ptr<fabric::Device> open(const Nic& nic, const fabric::VerbsOptions& options = {}) {
  std::string error;
  auto device = try_open(nic, &error, options);
  EXPECT_NE(device, nullptr) << error;
  return device;
}

/// Returns the options with which only rdma_cm connects.
inline fabric::VerbsOptions by_manager() {
  fabric::VerbsOptions options;
  options.connect = fabric::VerbsConnect::cm;
  return options;
}

inline Profile named(const std::string& name, Profile profile = capable()) {
  profile.name = name;
  return profile;
}

/// Two connected queue pairs, each with a completion queue of its own.
struct Connected {
  std::unique_ptr<fabric::CompletionQueue> client_cq, server_cq;
  std::unique_ptr<fabric::QueuePair> client, server;
  std::string error;  ///< the reason why they could not be made or connected

  Connected(fabric::Device& client_device, fabric::Device& server_device,
            fabric::QpOptions options = {.send_wr_max = 16, .recv_wr_max = 16})
      : client_cq(client_device.create_cq(64)), server_cq(server_device.create_cq(64)) {
    client = client_device.create_qp(*client_cq, options, &error);
    options.active = false;
    if (client != nullptr) server = server_device.create_qp(*server_cq, options, &error);
    if (server == nullptr) return;
    error = server->connect(client->local_address());
    if (error.empty()) error = client->connect(server->local_address());
    fabric::Wc none[1];
    // The queue pairs are connected on other threads. The time limit of an attempt ends this loop.
    while (error.empty() && !up()) {
      client_cq->poll({none, 1});
      server_cq->poll({none, 1});
      for (const auto* qp : {client.get(), server.get()}) {
        if (qp->state() == fabric::QpState::err) error = qp->error();
      }
    }
  }
  bool up() const {
    return client->state() == fabric::QpState::rts && server->state() == fabric::QpState::rts;
  }
};

}  // namespace rdma_rpc::nic

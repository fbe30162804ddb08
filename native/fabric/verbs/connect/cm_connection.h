// Connects a queue pair to its peer by rdma_cm. The queue pair already exists, and this file moves it through
// its states, so that receives are posted in time. On iWARP the kernel moves the queue pair. This code runs
//on the device's thread. rdma_cm sends a lost message again only after four seconds. Therefore the active
//side repeats its request earlier, with another id, and the passive side uses the newest request. The queue
//pairs are not affected, because the address blobs contain the numbers of their first packets. On iWARP, TCP
//makes the handshake and repeats messages by itself.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs/connect/attempts.h"
#include "fabric/verbs/connect/cm_objects.h"
#include "fabric/verbs/connect/connection.h"
#include "fabric/verbs/connect/connection_manager.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair;

/// The private data of an active side's request. The data names the queue pair of the peer and the sender's
/// own queue pair.
struct PrivateData {
  static constexpr std::uint32_t kMagic = 0x43565252;  // "RRVC"
  std::uint32_t magic = kMagic;
  Token passive{}, active{};
};

class CmConnection final : public Connection {
 public:
  CmConnection(ConnectionManager& manager, Attempts& attempts, QueuePair& qp);
  ~CmConnection() override;
  CmConnection(const CmConnection&) = delete;
  CmConnection& operator=(const CmConnection&) = delete;

  std::string start(const Address& peer) override;
  bool busy() const override { return thread_ != nullptr; }
  void disconnect() override;
  /// Handles the case that the peer's last message of the handshake was lost.
  void data_came() override;
  /// Destroys the objects in the order that rdma_cm needs.
  void close(QueueObjects queue) override;
  void call_returned() override;
  void expire() override;

  // The following members are for the connection manager.
  void handle(rdma_cm_event_type event, int status);
  /// Takes a peer's request. Returns true when the request is for this queue pair, which then owns `id`.
  bool offer(const PrivateData& data, IdPtr& id);

 private:
  enum class Phase : std::uint8_t {
    idle,        ///< start() has not been called
    waiting,     ///< passive: waits for the request
    resolving,   ///< active: resolves the peer's address, then the route
    connecting,  ///< active: waits for the answer
    accepting,   ///< passive: waits for the last message
    up,
    down,
  };

  /// Sets the timer to the end of the attempt, or to an earlier time at which to repeat the request.
  void set_timer();
  std::string resolve();
  std::string connect();
  std::string accept();
  Token active_word() const;
  void wait_again();
  std::string move_to(ibv_qp_state state);
  std::string move_to_rts();
  /// Sets the attributes on which the two sides have agreed by their addresses. Only the path comes from
  /// rdma_cm. rdma_cm has other limits, requests a delay of 655 ms after a SEND without a receive, and
  /// changes the packet numbers with each request.
  void agree(ibv_qp_attr* attr) const;
  rdma_conn_param parameters() const;
  std::string refused(int status) const;
  std::string peer_name() const;
  int time_left_ms() const;
  void up();
  void fail(const std::string& why);
  void end(Phase phase);
  void abandon(QueueObjects queue);
  /// Lets the connection manager destroy the id of an ended connection later. (The id of a cancelled request
  /// must be destroyed at once. Otherwise the peer would mistake that request for the newest one.)
  void let_go();

  ConnectionManager& manager_;
  Attempts& attempts_;
  QueuePair& qp_;
  Address peer_;
  Phase phase_ = Phase::idle;
  Attempts::Clock::time_point limit_;
  PrivateData private_data_;
  Token asked_by_{};  ///< on the active side, of the request that came before start()
  IdPtr id_;
  std::shared_ptr<ConnectThread> thread_;
  bool ready_ = false;     ///< passive: the queue pair is in RTS
  bool answered_ = false;  ///< the connection exists, though rdma_connect() may not have returned yet
};

}  // namespace rdma_rpc::fabric::verbs

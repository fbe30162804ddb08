/**
 * Lists bugs of UC, UD, multicast and single steps, for main.mjs. The tests that find them use simulated NICs
 * and the simulated fabric.
 */
const onNic = { program: 'nic_test', library: 'rdma_rpc_verbs' };
const onSim = { program: 'fabric_test' };

export const datagramBugs = [
  {
    ...onNic,
    name: 'the host does not join a multicast group',
    file: 'fabric/verbs/datagram/group.cc',
    from: '  joined->membership_ = become_member(port, joined->on_wire_);\n',
    to: '  joined->membership_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM, 0));\n',
    caughtBy: 'Datagrams.AGroupIsJoinedByTheHostAsWell',
  },
  {
    ...onNic,
    name: 'a failed member of a group is destroyed before it leaves the group',
    file: 'fabric/verbs/queue/queue_pair.cc',
    from: '  groups_.clear();\n',
    to: '',
    caughtBy: 'Datagrams.AMemberOfGroupsCanBeDestroyed',
  },
  {
    ...onNic,
    name: 'silent datagrams never free their entries',
    file: 'fabric/verbs/queue/posting.cc',
    from: 'if (from.signaled || type_ != QpType::rc)',
    to: 'if (from.signaled)',
    caughtBy: 'Datagrams.SilentDatagramsFreeTheirEntries',
  },
  {
    ...onNic,
    name: 'an answer over IPv4 goes to the receiver of the question',
    file: 'fabric/verbs/datagram/address_handle.cc',
    from: 'kSender = kGrhBytes - 8',
    to: 'kSender = kGrhBytes - 4',
    caughtBy: 'Nic/FabricSuite.ADatagramArrivesBehindItsHeaderAndCanBeAnswered/mlx5',
  },
  {
    ...onNic,
    name: 'an RC queue pair connects to a UC one',
    file: 'fabric/verbs/queue/queue_pair.cc',
    from: '(type_ == QpType::uc ? way_uc : 0)',
    to: '0',
    caughtBy: 'Nic/FabricSuite.AnRcAndAUcQueuePairDoNotConnect/mlx5',
  },
  {
    ...onNic,
    name: 'an answer on InfiniBand has no LID',
    file: 'fabric/verbs/datagram/address_handle.cc',
    from: '  attr.lid = wc.slid;\n',
    to: '',
    caughtBy: 'Datagrams.OnInfiniBandAnAnswerUsesTheLidOfTheCompletion',
  },
  {
    ...onSim,
    name: 'a stepwise queue pair goes to RTS by itself',
    file: 'fabric/sim/queue_pair.cc',
    from: '  if (options_.stepwise) {\n    state_ = QpState::rtr;\n  } else if',
    to: '  if',
    caughtBy: 'Sim/FabricSuite.AQueuePairTakesSingleSteps/immediate',
  },
];

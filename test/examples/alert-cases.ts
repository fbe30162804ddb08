/**
 * Lists situations of a fleet as samples of Prometheus, one a minute, and the alerts that they raise.
 * `0+60x40` is a counter that grows by 60 a minute for 40 minutes, and `3x40` is a gauge that stays at 3.
 */
export interface Case {
  readonly what: string;
  readonly series: Readonly<Record<string, string>>;
  /** The alerts that fire after 35 minutes. */
  readonly alerts: readonly string[];
}

const call = 'service="a.A",method="Do",type="unary",instance="s1"';
const channel = 'channel="a",zone="",instance="c1"';

/** Returns the calls of two servers, by their number a minute. */
const calls = (one: number, other: number): Record<string, string> => ({
  [`rdma_rpc_server_started_total{${call}}`]: `0+${one}x40`,
  [`rdma_rpc_server_started_total{${call.replace('s1', 's2')}}`]: `0+${other}x40`,
});
const handled = (side: string, code: string, perMinute: number): Record<string, string> => ({
  [`rdma_rpc_${side}_handled_total{${call},code="${code}"}`]: `0+${perMinute}x40`,
});
const addresses = (state: string, count: number, stale = 'false'): Record<string, string> => ({
  [`rdma_rpc_channel_addresses{${channel},state="${state}",stale="${stale}"}`]: `${count}x40`,
});
const gauge = (name: string, value: number): Record<string, string> => ({
  [`${name}{instance="s1"}`]: `${value}x40`,
});
const counter = (name: string, perMinute: number, labels = ''): Record<string, string> => ({
  [`${name}{instance="s1"${labels}}`]: `0+${perMinute}x40`,
});
/** Returns the buckets of a histogram whose calls all take the same time. */
const duration = (seconds: number): Record<string, string> =>
  Object.fromEntries(
    ['0.1', '1', '2', '+Inf'].map((le) => [
      `rdma_rpc_server_handling_seconds_bucket{${call},le="${le}"}`,
      le === '+Inf' || Number(le) >= seconds ? '0+60x40' : '0x40',
    ]),
  );

const fine: Record<string, string> = {
  ...calls(600, 500),
  ...handled('server', 'OK', 1000),
  ...handled('server', 'NOT_FOUND', 500),
  ...handled('client', 'OK', 1000),
  ...duration(0.05),
  ...counter('rdma_rpc_native_calls', 1000),
  ...counter('rdma_rpc_native_retries', 5),
  ...addresses('ready', 10),
  ...gauge('rdma_rpc_native_sessions', 50),
  ...counter('fleet_server_connections_total', 2, ',result="accepted",fabric="tcp"'),
  ...gauge('fleet_server_serving', 1),
  ...gauge('fleet_server_draining', 0),
  ...gauge('fleet_server_registered', 1),
  ...gauge('rdma_rpc_native_loop_lag_max_us', 20_000),
  ...gauge('rdma_rpc_native_memory_waiters', 0),
  ...gauge('rdma_rpc_native_calls_pending_release', 0),
  ...counter('rdma_rpc_native_protocol_errors', 0),
  ...counter('rdma_rpc_device_counter', 1, ',device="mlx5_0",port="1",counter="out_of_sequence"'),
};

/** The difference from a healthy fleet. */
const when = (what: string, series: Record<string, string>, ...alerts: string[]): Case => ({
  what,
  series: { ...fine, ...series },
  alerts,
});
const none: Record<string, string> = {
  [`rdma_rpc_channel_addresses{${channel},state="ready",stale="false"}`]: '_x40',
};
const third: Record<string, string> = {
  [`rdma_rpc_server_started_total{${call.replace('s1', 's3')}}`]: '0+10x40',
};

export const cases: readonly Case[] = [
  when('nothing', {}),
  when('handlers that fail', handled('server', 'INTERNAL', 30), 'RdmaRpcServerErrors'),
  when('callers that get no server', handled('client', 'UNAVAILABLE', 30), 'RdmaRpcClientErrors'),
  when('slow calls', duration(1.5), 'RdmaRpcSlowCalls'),
  when('many repeated calls', counter('rdma_rpc_native_retries', 200), 'RdmaRpcRetries'),
  when(
    'a channel without a server',
    { ...none, ...addresses('failing', 3) },
    'RdmaRpcNoEndpoint',
    'RdmaRpcEndpointsFailing',
  ),
  when('a channel that is not used', { ...none, ...addresses('idle', 3) }),
  when('servers that do not answer', addresses('failing', 5), 'RdmaRpcEndpointsFailing'),
  when('one of eleven that does not answer', addresses('failing', 1)),
  when('ejected servers', addresses('ejected', 2), 'RdmaRpcEndpointsEjected'),
  when('unhealthy servers', addresses('unhealthy', 2), 'RdmaRpcEndpointsEjected'),
  when('a registry that is down', addresses('ready', 3, 'true'), 'RdmaRpcStaleAddresses'),
  when('a server that gets all calls', { ...calls(6000, 10), ...third }, 'RdmaRpcUnevenLoad'),
  when(
    'clients that connect again and again',
    counter('fleet_server_connections_total', 60, ',result="accepted",fabric="tcp"'),
    'RdmaRpcReconnects',
  ),
  when(
    'clients that are refused',
    counter('fleet_server_connections_total', 20, ',result="refused",fabric=""'),
    'RdmaRpcRefusedConnections',
  ),
  when('a drain that does not end', gauge('fleet_server_draining', 1), 'RdmaRpcDrainStuck'),
  when('a server that nobody finds', gauge('fleet_server_registered', 0), 'RdmaRpcNotRegistered'),
  when('a server that is stopped on purpose', {
    ...gauge('fleet_server_serving', 0),
    ...gauge('fleet_server_registered', 0),
  }),
  when('a blocked event loop', gauge('rdma_rpc_native_loop_lag_max_us', 400_000), 'RdmaRpcEventLoopBlocked'),
  when('too little memory', gauge('rdma_rpc_native_memory_waiters', 3), 'RdmaRpcMemoryShort'),
  when(
    'a server that hangs',
    gauge('rdma_rpc_native_calls_pending_release', 3),
    'RdmaRpcCallsPendingRelease',
  ),
  when('a peer of another build', counter('rdma_rpc_native_protocol_errors', 1), 'RdmaRpcProtocolErrors'),
  when(
    'a network that loses packets',
    counter('rdma_rpc_device_counter', 50, ',device="mlx5_0",port="1",counter="out_of_sequence"'),
    'RdmaRpcDeviceErrors',
  ),
];

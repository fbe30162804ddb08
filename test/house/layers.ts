/**
 * Lists the allowed dependencies of each layer: the arrows of docs/ARCHITECTURE.md, as rules that a test
 * applies to imports and includes.
 */

export interface LayerRule {
  /** Files to which the rule applies. */
  readonly files: RegExp;
  /**
   * The files of this project that these files may import or include, besides files of their own folder, as
   * paths relative to the root.
   */
  readonly mayUse: RegExp;
}

/**
 * Makes a rule for a folder of the runtime. The folder may use itself, and the folders and single files of
 * the runtime that are below it.
 */
function part(folder: string, below: string, files: string): LayerRule {
  const folders = [folder, ...below.split(' ')].filter((name) => name !== '').join('|');
  const single = files === '' ? '' : `|(${files.replaceAll(' ', '|')})\\.ts$`;
  return {
    files: new RegExp(`^runtime/${folder}/`),
    mayUse: new RegExp(`^runtime/((${folders})/${single})`),
  };
}

export const typescriptLayers: readonly LayerRule[] = [
  { files: /^runtime\/(clock|fabrics|limits|security-levels)\.ts$/, mayUse: /^$/ },
  {
    files:
      /^runtime\/native\/(collector|event-row|remedy|sockets|stats|words|verbs-inspection|verbs-report)\.ts$/,
    mayUse: /^$/,
  },
  part('native', '', 'clock fabrics'),
  // The layers that client and server share, from the lowest up. Client and server do not use each other.
  part('codec', '', ''),
  part('core', 'codec', 'clock limits native/native'),
  part('loopback', 'core', 'clock limits native/native'),
  part('boundary', 'loopback core codec', 'clock native/event-row fabrics limits native/native'),
  part(
    'control',
    'boundary core codec',
    'clock fabrics limits native/native native/verbs-device security-levels',
  ),
  part('stream', 'boundary core codec', 'limits native/native'),
  part('client', 'stream control boundary core codec', 'clock fabrics limits native/native'),
  part('server', 'stream control boundary core codec', 'clock fabrics limits native/native'),
  // Separate entry points, which use only what their purpose needs.
  part('counters', '', 'clock native/event-row native/stats security-levels'),
  part('details', 'codec', ''),
  part('msgpack', 'codec', 'limits'),
  part('tensor', 'codec', ''),
  part('verbs', 'core', 'native/native native/verbs-device'),
  part('adapters/validate', 'details core codec', ''),
  part('adapters/telemetry', 'counters control core', 'clock native/native'),
  part('adapters/connect', 'client core codec', 'clock native/collector limits native/native'),
  part('services', 'server control core codec', 'clock limits'),
  part('workers', 'server control core', 'clock limits'),
  // Layers that use both sides; no other layer is based on them.
  part('adapters/grpc', 'client server core codec', ''),
  part('socket', 'client server control core codec', 'limits'),
  part('identity/spiffe', 'adapters/grpc client control core codec', 'clock'),
  part('discovery', 'adapters/grpc services client server control core codec', 'clock'),
  part('identity/kubernetes', 'discovery client server core', ''),
  part('reverse', 'client server control boundary core codec', 'limits'),
  part('memory', 'client server control verbs core codec', 'limits native/verbs-device'),
  {
    files: /^runtime\/(index|in-process)\.ts$/,
    mayUse: /^runtime\/((client|server|control|core|codec)\/|(fabrics|native\/native|in-process)\.ts$)/,
  },
  { files: /^codegen\//, mayUse: /^codegen\/|^runtime\/codec\// },
  { files: /^cli\//, mayUse: /^(cli|codegen|runtime)\// },
  { files: /^examples\//, mayUse: /^examples\// },
];

/**
 * The order is fabric < memory < session < binding, fabric < checked < binding, and fabric < perf <
 * perf/program. telemetry uses no other layer, and session and binding write to it. Only a fabric itself, the
 * binding and the program of perf use a fabric by its name.
 */
export const nativeLayers: readonly LayerRule[] = [
  { files: /^native\/telemetry\//, mayUse: /^native\/telemetry\// },
  { files: /^native\/fabric\/[^/]+$/, mayUse: /^native\/fabric\/[^/]+$/ },
  { files: /^native\/fabric\/software\//, mayUse: /^native\/fabric\/(software\/)?[^/]+$/ },
  { files: /^native\/fabric\/sim\//, mayUse: /^native\/fabric\/((sim|software)\/)?[^/]+$/ },
  { files: /^native\/fabric\/shm\//, mayUse: /^native\/fabric\/(shm\/(\w+\/)?|software\/)?[^/]+$/ },
  { files: /^native\/fabric\/tcp\//, mayUse: /^native\/fabric\/(tcp\/(\w+\/)?|software\/)?[^/]+$/ },
  { files: /^native\/fabric\/verbs\//, mayUse: /^native\/fabric\/(verbs\/(\w+\/)?)?[^/]+$/ },
  { files: /^native\/seal\//, mayUse: /^native\/seal\// },
  { files: /^native\/memory\//, mayUse: /^native\/(memory\/|fabric\/fabric\.h$)/ },
  // The two halves of a session are based on its link, and do not use each other.
  {
    files: /^native\/session\/link\//,
    mayUse:
      /^native\/(session\/(link\/)?(?!(session|context)\.h$)[^/]+$|memory\/|seal\/|telemetry\/|fabric\/(fabric|free_list|prefetch|receive_queue)\.h$)/,
  },
  {
    files: /^native\/session\/client\//,
    mayUse:
      /^native\/(session\/((client|link)\/)?(?!(session|context)\.h$)[^/]+$|memory\/|seal\/|telemetry\/|fabric\/(fabric|free_list|prefetch|receive_queue)\.h$)/,
  },
  {
    files: /^native\/session\/server\//,
    mayUse:
      /^native\/(session\/((server|link)\/)?(?!(session|context)\.h$)[^/]+$|memory\/|seal\/|telemetry\/|fabric\/(fabric|free_list|prefetch|receive_queue)\.h$)/,
  },
  {
    files: /^native\/session\//,
    mayUse:
      /^native\/(session\/|memory\/|seal\/|telemetry\/|fabric\/(fabric|free_list|prefetch|receive_queue)\.h$)/,
  },
  { files: /^native\/checked\//, mayUse: /^native\/(checked\/|fabric\/(fabric|receive_queue)\.h$)/ },
  // `rdma-rpc perf` measures devices, not sessions.
  {
    files: /^native\/perf\/[^/]+$/,
    mayUse: /^native\/(perf\/[^/]+$|fabric\/(fabric|receive_queue|unique_fd|verbs_loader)\.h$)/,
  },
  // This part belongs to the plug-in.
  { files: /^native\/perf\/bare\//, mayUse: /^native\/(perf\/|fabric\/(verbs\/[^/]+|unique_fd\.h)$)/ },
  // This part chooses among fabrics, as the binding does.
  { files: /^native\/perf\/program\//, mayUse: /^native\/(perf|fabric)\// },
  {
    files: /^native\/binding\//,
    mayUse: /^native\/(binding|checked|session|memory|seal|telemetry|fabric)\//,
  },
];

/**
 * Files that may import each other in a circle, because the text that they read is recursive. Each circle is
 * one sorted list. To avoid a new circle, the code that both sides need can be moved into a file below them.
 */
export const circles: readonly (readonly string[])[] = [
  // In the parser, a field may be a group, a group contains a message, and its fields may again be groups.
  ['codegen/source/parse-field.ts', 'codegen/source/parse-message.ts'],
  // In JSON, a message inside of an Any, of a well-known type or of an extension is read and written like
  // other messages.
  [
    'runtime/codec/json/any.ts',
    'runtime/codec/json/extensions.ts',
    'runtime/codec/json/read.ts',
    'runtime/codec/json/well-known.ts',
    'runtime/codec/json/write.ts',
  ],
];

/**
 * Returns sorted groups of files that import each other in circles. `uses` has the imports of each file. The
 * function uses Tarjan's algorithm for strongly connected components.
 */
export function circlesIn(uses: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const open: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    const own = order.size;
    order.set(file, own);
    open.push(file);
    let low = own;
    for (const used of uses.get(file) ?? []) {
      if (!uses.has(used)) continue;
      if (!order.has(used)) low = Math.min(low, visit(used));
      else if (open.includes(used)) low = Math.min(low, order.get(used)!);
    }
    if (low === own) {
      const group = open.splice(open.indexOf(file));
      if (group.length > 1) found.push(group.sort());
    }
    return low;
  };
  for (const file of uses.keys()) if (!order.has(file)) visit(file);
  return found.sort();
}

/** The first rule that covers a file decides. Returns the files that a file uses in violation of its rule. */
export function violations(file: string, uses: readonly string[], rules: readonly LayerRule[]): string[] {
  const rule = rules.find((candidate) => candidate.files.test(file));
  if (rule === undefined) return [];
  return uses.filter((used) => !rule.mayUse.test(used)).map((used) => `${file} uses ${used}`);
}

/** Where the runtime's few log lines go unless the user gives a `log` option: Node's warnings, once per occurrence, never per call. */
export type Log = (line: string) => void;

export const warn: Log = (line) => process.emitWarning(line, 'RdmaRpcWarning');

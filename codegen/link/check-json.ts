/**
 * Checks that the JSON names of fields are unique. Otherwise JSON would lose a field. For proto2, and for
 * files whose json_format allows it, a conflict is a warning, and one field then uses its .proto name
 * (model/fields.ts). check.ts calls it for each message.
 */
import { jsonNameOf } from '../../runtime/codec/fields.ts';
import type { DescriptorProto } from '../descriptor/descriptor.rdma.ts';

export interface JsonConflict {
  /** Index of the later field. */
  readonly field: number;
  readonly message: string;
  readonly severity: 'error' | 'warning';
}

/** Returns the fields of a message whose JSON names are equal. `lenient` allows equal default names. */
export function jsonConflicts({ field: fields }: DescriptorProto, lenient: boolean): JsonConflict[] {
  const result: JsonConflict[] = [];
  const byDefault = new Map<string, string>();
  const byName = new Map<string, { readonly name: string; readonly chosen: boolean }>();
  fields.forEach(({ name = '', jsonName = '' }, field) => {
    const usual = jsonNameOf(name);
    const chosen = jsonName !== usual;
    const same = byName.get(jsonName);
    const alike = byDefault.get(usual);
    // Other code reports equal names in the .proto.
    if (same?.name === name) return;
    if (same !== undefined) {
      const severity = lenient && !chosen && !same.chosen ? 'warning' : 'error';
      const remedy =
        severity === 'error' ? 'give one a json_name of its own' : 'one goes by its own name there';
      result.push({
        field,
        severity,
        message: `${same.name} and ${name} are both called ${jsonName} in JSON: ${remedy}`,
      });
    } else if (alike !== undefined && !lenient) {
      // Only a json_name distinguishes the two fields, and programs that ignore json_name would confuse them.
      result.push({
        field,
        severity: 'error',
        message: `${alike} and ${name} would both be called ${usual} in JSON, whatever their json_name`,
      });
    }
    if (same === undefined) byName.set(jsonName, { name, chosen });
    if (alike === undefined) byDefault.set(usual, name);
  });
  return result;
}

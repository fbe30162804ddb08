/**
 * Names of fields in JSON: no two the same, or JSON would lose one. What files of proto2 may have all the
 * same, and those whose json_format says so, is a warning: there one field goes by its name in the .proto
 * (model/fields.ts). Called by check.ts for each message.
 */
import { jsonNameOf } from '../../runtime/codec/fields.ts';
import type { DescriptorProto } from '../descriptor/descriptor.rdma.ts';

export interface JsonConflict {
  /** Index of the field that comes later. */
  readonly field: number;
  readonly message: string;
  readonly severity: 'error' | 'warning';
}

/** `lenient`: names that nobody has chosen may be the same. */
export function jsonConflicts({ field: fields }: DescriptorProto, lenient: boolean): JsonConflict[] {
  const result: JsonConflict[] = [];
  const byDefault = new Map<string, string>();
  const byName = new Map<string, { readonly name: string; readonly chosen: boolean }>();
  fields.forEach(({ name = '', jsonName = '' }, field) => {
    const usual = jsonNameOf(name);
    const chosen = jsonName !== usual;
    const same = byName.get(jsonName);
    const alike = byDefault.get(usual);
    // The same name in the .proto is another matter.
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
      // Where a json_name keeps them apart: programs that do not know of it would take one for the other.
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

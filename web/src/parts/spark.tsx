// A small line of 0 to 100 %, always on that scale, with the limit dashed.
import { memo } from "preact/compat";
import type { JSX } from "preact";
import { sparkPoints } from "../model/scale.ts";

export interface SparkProps {
  values: readonly (number | null)[];
  points: number;
  height?: number;
  limit?: number | null;
  /** Whether what is above the limit is amber: while the GPU as a whole counts as hot. */
  hot?: boolean;
}

export function Spark({ values, points, height = 38, limit, hot = false }: SparkProps): JSX.Element {
  const runs = sparkPoints(values, points, height);
  const y = limit == null ? null : height - 1 - limit * (height - 2);
  return (
    <svg class="spark" width="100%" height={height} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {runs.map((run) => (
        <polygon key={run.from} points={`${run.from},${height} ${run.line} ${run.to},${height}`} fill="var(--shade)" />
      ))}
      {y === null ? null : (
        <line x1="0" x2="100" y1={y} y2={y} stroke="var(--muted)" stroke-width="1" stroke-dasharray="2 3" vector-effect="non-scaling-stroke" />
      )}
      <line x1="0" x2="100" y1={height - 0.5} y2={height - 0.5} class="grid" vector-effect="non-scaling-stroke" />
      {runs.map((run) => (
        <polyline key={run.from} points={run.line} fill="none" stroke="var(--text)" stroke-width="1.3" stroke-linejoin="round" vector-effect="non-scaling-stroke" />
      ))}
      {hot && y !== null ? (
        <svg x="0" y="0" width="100" height={Math.max(0, y)} viewBox={`0 0 100 ${Math.max(0.01, y)}`} preserveAspectRatio="none" overflow="hidden">
          {runs.map((run) => (
            <polyline key={run.from} points={run.line} fill="none" stroke="var(--warn)" stroke-width="1.6" vector-effect="non-scaling-stroke" />
          ))}
        </svg>
      ) : null}
    </svg>
  );
}

export const StillSpark = memo(Spark);

import { select } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform, type ZoomBehavior } from "d3-zoom";
import { useEffect, useMemo, useRef, type RefObject } from "react";

const MIN_SCALE = 0.05;
const MAX_SCALE = 4;
/** Below SMALL_SCALE the picture hides the labels of clients, below TINY_SCALE all labels but those of routers. */
const SMALL_SCALE = 0.75;
const TINY_SCALE = 0.4;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The functions that move and scale the picture. */
export interface ZoomControl {
  readonly zoomBy: (factor: number) => void;
  readonly panBy: (x: number, y: number) => void;
  /** Show all of the box. */
  readonly fit: (box: Box) => void;
  /** Move the picture as little as needed to make the point visible. */
  readonly reveal: (x: number, y: number) => void;
  /** Whether the user has moved the picture since it was fitted. */
  readonly isMoved: () => boolean;
  /** Return how many pixels one unit of the picture takes. */
  readonly scale: () => number;
}

/** The factor of one step of zoom. */
export const ZOOM_STEP = 1.4;
/** One step of a move, in pixels. */
export const PAN_STEP = 80;

function detail(scale: number): string {
  return scale < TINY_SCALE ? "tiny" : scale < SMALL_SCALE ? "small" : "full";
}

/**
 * Let wheel, pinch and drag move and scale the group within the picture without redrawing it. A drag on an element with
 * `data-drag` moves that element instead. Return the functions that move the picture.
 */
export function useZoom(svg: RefObject<SVGSVGElement | null>, group: RefObject<SVGGElement | null>): ZoomControl {
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | undefined>(undefined);
  const moved = useRef(false);
  useEffect(() => {
    const element = svg.current;
    if (element === null) return undefined;
    const zoomed = zoom<SVGSVGElement, unknown>()
      .scaleExtent([MIN_SCALE, MAX_SCALE])
      .filter((event: Event) => !(event.target instanceof Element && event.type !== "wheel" && event.target.closest("[data-drag]") !== null))
      .on("zoom", (event: { transform: { toString: () => string; k: number }; sourceEvent: unknown }) => {
        group.current?.setAttribute("transform", event.transform.toString());
        element.dataset["detail"] = detail(event.transform.k);
        if (event.sourceEvent !== null && event.sourceEvent !== undefined) moved.current = true;
      });
    behaviour.current = zoomed;
    const selection = select(element);
    selection.call(zoomed).on("dblclick.zoom", null);
    return () => {
      selection.on(".zoom", null);
    };
  }, [svg, group]);
  return useMemo(() => {
    const act = (change: (element: SVGSVGElement, zoomed: ZoomBehavior<SVGSVGElement, unknown>) => void): void => {
      if (svg.current !== null && behaviour.current !== undefined) change(svg.current, behaviour.current);
    };
    return {
      zoomBy: (factor) => act((element, zoomed) => {
        moved.current = true;
        zoomed.scaleBy(select(element), factor);
      }),
      panBy: (x, y) => act((element, zoomed) => {
        moved.current = true;
        zoomed.translateBy(select(element), x / zoomTransform(element).k, y / zoomTransform(element).k);
      }),
      fit: (box) => act((element, zoomed) => {
        moved.current = false;
        const { clientWidth: width, clientHeight: height } = element;
        const scale = Math.min(1.2, Math.max(MIN_SCALE, Math.min(width / box.width, height / box.height)));
        const [x, y] = [width / 2 - scale * (box.x + box.width / 2), height / 2 - scale * (box.y + box.height / 2)];
        zoomed.transform(select(element), zoomIdentity.translate(x, y).scale(scale));
      }),
      reveal: (x, y) => act((element, zoomed) => {
        const [left, top] = zoomTransform(element).apply([x, y]);
        const { clientWidth: width, clientHeight: height } = element;
        const margin = 40;
        const shift = (at: number, size: number): number => (at < margin ? margin - at : at > size - margin ? size - margin - at : 0);
        const [right, down] = [shift(left, width), shift(top, height)];
        if (right !== 0 || down !== 0)
          zoomed.translateBy(select(element), right / zoomTransform(element).k, down / zoomTransform(element).k);
      }),
      isMoved: () => moved.current,
      scale: () => (svg.current === null ? 1 : zoomTransform(svg.current).k),
    };
  }, [svg]);
}

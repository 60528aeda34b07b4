import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/policy/*",
  title: "Policy",
  group: "Details",
  order: 60,
  load: () => import("./Policy"),
};

export default route;

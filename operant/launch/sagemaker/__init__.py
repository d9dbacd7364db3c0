"""Training jobs of SageMaker: the request, the source, the container's launcher, the image and the permissions."""
